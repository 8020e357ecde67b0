"""The sweep: retention first, then expiry, in steps of a thousand jobs that each commit."""

from __future__ import annotations

from typing import Final, Generic

from ...model.job import EXPIRED
from ...model.records import Swept
from .engine import Engine
from .transaction import AnyTransaction

STEP: Final = 1_000


class Sweep(Generic[AnyTransaction]):
    """How far a sweep of a queue, or of all, has come. What it buries itself it does not purge."""

    def __init__(self, engine: Engine[AnyTransaction], queue: str | None) -> None:
        self._engine = engine
        self._queue = queue
        self._purged = self._expired = 0
        self._purging = True
        self.done = False

    @property
    def swept(self) -> Swept:
        """The counts so far."""
        return Swept(expired=self._expired, purged=self._purged)

    def step(self, transaction: AnyTransaction, now_ms: int) -> None:
        """One step; the last that purges goes on to what has expired, so that a small sweep is one transaction."""
        if self._purging:
            old = self._engine.purgeable(transaction, self._queue, now_ms, STEP)
            self._engine.purge(transaction, old)
            self._purged += len(old)
            self._purging = len(old) == STEP
        if not self._purging:
            late = self._engine.expired(transaction, self._queue, now_ms, STEP)
            self._engine.bury(transaction, late, EXPIRED, now_ms, False)
            self._expired += len(late)
            self.done = len(late) < STEP
