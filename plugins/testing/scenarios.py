"""Plays one row of the crash matrix with one job in a ledger of its own, and says what was seen.

Clocks are logical: a successor starts at the instant at which its predecessor's lease has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...core.ledgers.open import open_ledger
from ...core.model.documents import JSON
from ...core.model.effect import Effect
from ...core.model.inputs import NewJob
from ...core.model.job import (
    COMPLETED,
    DEAD,
    HELD,
    Job,
)
from ..manager import Plugins
from ..settings import Given, Settings
from .points import (
    CANNOT_SAY,
    REDELIVERY,
    TWO_AT_ONCE,
    Point,
)
from .processes import KitFailed, WorkerProcess

START_MS: Final = 1_000
LEASE_MS: Final = 60_000
MAX_ATTEMPTS: Final = 10
MAX_ROUNDS: Final = 12
"""How many successors are started before a job counts as one that never ends."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The effect under test, and how to run it."""

    effect: str
    plugins: Sequence[str]
    settings: Settings
    text: str
    observed: Callable[[], int] | None

    def orders(self) -> dict[str, Any]:
        """What a process needs to know of it, as JSON; ``chosen`` is the other end."""
        given = {
            key: value if isinstance(value, Given) else Given(value, "the settings")
            for key, value in self.settings.items()
        }
        return {
            "plugins": list(self.plugins),
            "effect": self.effect,
            "settings": {key: [one.value, one.origin, one.is_text] for key, one in given.items()},
            "text": self.text,
            "path": sys.path,
        }


def chosen(orders: Mapping[str, Any]) -> Effect:
    """The effect under test, configured, in the process that was given the orders; its text is valid."""
    sys.path[:] = orders["path"]  # pytest has put the folders of its tests there, where the effect may lie
    given = {key: Given(*parts) for key, parts in orders["settings"].items()}
    effect = Plugins.load(modules=orders["plugins"]).choose(orders["effect"], given)
    effect.validate(orders["text"])
    return effect


@dataclass(slots=True)
class Played:
    """What was seen of one row."""

    seen: int | None
    """How often the outside world saw the effect; None where it is not asked."""
    state: str
    error: str | None
    outcome: Mapping[str, JSON] | None
    """The receipt's."""
    reports: list[dict[str, Any]] = field(default_factory=list)
    """What the workers reported, in the order in which they ended."""

    def answers(self) -> list[str]:
        """What ``effect_reconcile`` answered, in order."""
        return [report["asked"] for report in self.reports if "asked" in report]

    def outcomes(self) -> list[Any]:
        """What each application of the effect returned, in order."""
        return [report["applied"] for report in self.reports if "applied" in report]

    def marks(self) -> list[str]:
        """The marks that the effect passed, each once, in order."""
        return list(dict.fromkeys(report["mark"] for report in self.reports if "mark" in report))

    def conflict(self) -> str | None:
        """The message of a receipt that was not what it should have been."""
        return next((r["message"] for r in self.reports if r.get("error") == "ReceiptConflict"), None)


class Scenario:
    """One job, one ledger, several workers."""

    def __init__(self, subject: Subject, point: Point, *, mark: str | None, id: str, store: str) -> None:
        self._subject = subject
        self._point = point
        self._mark = mark
        self._id = id
        self._store = store
        self._now_ms = START_MS
        self._reports: list[dict[str, Any]] = []

    def play(self) -> Played:
        """Disturb the first worker as the row says, then let successors finish the job.

        Raises:
            KitFailed: the row could not be played.
        """
        before = self._observed()
        self._enqueue()
        self._disturb()
        job = self._finish()
        if self._point is REDELIVERY:
            self._enqueue()
            self._worker()
            job = self._finish()
        after = self._observed()
        with open_ledger(self._store) as ledger:
            receipt = ledger.receipts([self._id]).get(self._id)
        return Played(
            seen=None if before is None or after is None else after - before,
            state=job.state,
            error=job.last_error,
            outcome=None if receipt is None else receipt.outcome,
            reports=self._reports,
        )

    def _disturb(self) -> None:
        if self._point.where is None:
            return
        with self._start(self._point.how) as first:
            if not first.until_reached():
                self._collect(first)
                raise KitFailed(
                    f"the worker never came to the point{f' {self._mark!r}' if self._mark else ''}: "
                    f"{self._reports[-1] if self._reports else 'it did nothing'}"
                )
            if self._point.how == "stall":
                self._now_ms += LEASE_MS
                with self._start("stall" if self._point is TWO_AT_ONCE else None) as second:
                    if self._point is TWO_AT_ONCE:
                        there = second.until_reached()  # not if its effect may not be tried again
                        first.go_on()
                        if there:
                            second.go_on()
                    self._collect(second)
                if self._point is not TWO_AT_ONCE:
                    first.go_on()
            self._collect(first)
        if self._point is CANNOT_SAY:
            self._now_ms += LEASE_MS
            self._worker(unknown=True)

    def _finish(self) -> Job:
        for _ in range(MAX_ROUNDS):
            job, due_ms = self._look()
            if job.state in (COMPLETED, DEAD, HELD) or self._in_conflict():
                break
            self._now_ms = max(self._now_ms, due_ms)
            self._worker()
        return self._look()[0]

    def _look(self) -> tuple[Job, int]:
        with open_ledger(self._store) as ledger:
            job = ledger.get_job(self._id)
            assert job is not None, "the scenario has just enqueued it"
            return job, ledger.next_due_ms() or 0

    def _in_conflict(self) -> bool:
        return any(report.get("error") == "ReceiptConflict" for report in self._reports)

    def _worker(self, *, unknown: bool = False) -> None:
        with self._start(None, unknown=unknown) as worker:
            self._collect(worker)

    def _start(self, how: str | None, *, unknown: bool = False) -> WorkerProcess:
        return WorkerProcess(
            {
                **self._subject.orders(),
                "store": self._store,
                "claimant": f"crash-kit-{self._now_ms}",
                "lease_ms": LEASE_MS,
                "max_attempts": MAX_ATTEMPTS,
                "now_ms": self._now_ms,
                "where": self._point.where if how else None,
                "mark": self._mark if how else None,
                "how": how or "kill",
                "unknown": unknown,
            }
        )

    def _collect(self, worker: WorkerProcess) -> None:
        reports = worker.end()
        self._reports += reports
        for report in reports:
            if "error" in report and report["error"] not in ("LeaseLost", "ReceiptConflict"):
                raise KitFailed(report["message"])

    def _enqueue(self) -> None:
        with open_ledger(self._store) as ledger:
            ledger.enqueue(
                [NewJob(self._id, self._subject.text, effect=self._subject.effect)], now_ms=START_MS
            )

    def _observed(self) -> int | None:
        if self._subject.observed is None:
            return None
        seen = self._subject.observed()
        if type(seen) is not int:
            raise KitFailed(f"observed() returned {seen!r}; it must return a whole number")
        return seen
