"""The sweep: retention first, then expiry, in steps of a thousand jobs that each commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ...model.records import Swept

STEP: Final = 1_000

SweepUpTo: TypeAlias = Callable[[int], int]
"""Sweep so many jobs at most, in the step's transaction; how many they were."""


class Sweep:
    """How far a sweep has come. What it buries itself it does not purge."""

    def __init__(self) -> None:
        self._purged = self._expired = 0
        self._purging = True
        self.done = False

    @property
    def swept(self) -> Swept:
        """How many jobs it was so far."""
        return Swept(expired=self._expired, purged=self._purged)

    def step(self, purge: SweepUpTo, expire: SweepUpTo) -> None:
        """One step; the last that purges goes on to what has expired, so that a small sweep is one transaction."""
        if self._purging:
            count = purge(STEP)
            self._purged += count
            self._purging = count == STEP
        if not self._purging:
            count = expire(STEP)
            self._expired += count
            self.done = count < STEP
