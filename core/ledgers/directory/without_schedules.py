"""The verbs of pauses and schedules, which this kind of ledger does not have: each names the kinds that do."""

from __future__ import annotations

from typing import NoReturn

from ...errors import Unsupported
from ...model.records import Fire, Schedule
from ..operator import Operator


class WithoutSchedules:
    """Refuses what needs an SQL ledger, and answers that there is nothing of it."""

    @property
    def location(self) -> str:
        """Where the ledger lies."""
        raise NotImplementedError

    def _pause(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        self._needs_sql("a pause")

    def _resume(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        self._needs_sql("a pause")

    def paused(self) -> list[str]:
        """No queue of this kind is ever paused."""
        return []

    def _register_schedule(self, schedule: Schedule, now_ms: int | None) -> None:
        self._needs_sql("a schedule")

    def unregister_schedule(self, name: str) -> bool:
        """Not of this kind."""
        self._needs_sql("a schedule")

    def schedules(self) -> list[Schedule]:
        """There are none of this kind."""
        return []

    def _tick(self, now_ms: int | None) -> list[Fire]:
        return []

    def soonest(self) -> int | None:
        """There is nothing to fire."""
        return None

    def _needs_sql(self, what: str) -> NoReturn:
        raise Unsupported(f"{self.location}: {what} needs an SQL ledger (--store jobs.db, or postgresql://…)")
