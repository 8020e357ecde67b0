"""The verbs of pauses and schedules of a directory ledger: the shared rules between reading and writing two files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

from ...model import schedules as rules
from ...model.records import Applied, Fire, Schedule
from ...model.ticks import soonest
from ..operator import Operator
from ..verbs import LedgerVerbs
from . import plans as planning
from .plans import Plans
from .store import Store
from .table import Table


class PlanVerbs(LedgerVerbs):
    """A part of ``DirectoryLedger``; ``protocol.py`` says what each verb promises."""

    _store: Store
    _plans: Plans

    @abstractmethod
    def _open_table(self, *, even_copying: bool = False) -> AbstractContextManager[Table]:
        """The table for a change; a closed ledger refuses every one."""

    @abstractmethod
    def _at(self, now_ms: int | None) -> int:
        """The instant of a verb."""

    def _pause(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        with self._open_table():
            paused = self._plans.paused()
            if queue in paused:
                return False
            self._store.record(operator.entry("pause", queue, self._at(now_ms)))
            self._plans.put_paused({*paused, queue})
        return True

    def _resume(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        with self._open_table():
            paused = self._plans.paused()
            if queue not in paused:
                return False
            self._store.record(operator.entry("resume", queue, self._at(now_ms)))
            self._plans.put_paused(paused - {queue})
        return True

    def paused(self) -> list[str]:
        """By name."""
        with self._store.table():
            return sorted(self._plans.paused())

    def _register_schedule(self, schedule: Schedule, now_ms: int | None) -> None:
        with self._open_table():
            stored = self._plans.schedules()
            stored[schedule.name] = rules.registered(stored.get(schedule.name), schedule, self._at(now_ms))
            self._plans.put_schedules(stored)

    def unregister_schedule(self, name: str) -> bool:
        """Jobs that it has fired stay."""
        with self._open_table():
            stored = self._plans.schedules()
            if stored.pop(name, None) is None:
                return False
            self._plans.put_schedules(stored)
        return True

    def _apply_schedules(
        self, wanted: list[Schedule], owner: str, operator: Operator, dry_run: bool, now_ms: int | None
    ) -> Applied:
        with self._open_table():
            at_ms, stored = self._at(now_ms), self._plans.schedules()
            done = rules.applied(stored.values(), wanted, owner)
            if dry_run or not (done.added or done.changed or done.removed):
                return done
            for schedule in wanted:
                if schedule.name not in done.unchanged:
                    before = stored.get(schedule.name)
                    stored[schedule.name] = rules.registered(before, schedule, at_ms)
            for name in done.removed:
                del stored[name]
            for action, names in (("add", done.added), ("change", done.changed), ("remove", done.removed)):
                for name in names:
                    self._store.record(operator.entry(f"schedule-{action}", name, at_ms))
            self._plans.put_schedules(stored)
        return done

    def _pause_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool:
        with self._open_table():
            stored = self._plans.schedules()
            before = stored.get(name)
            if before is None or before.paused:
                return False
            self._store.record(operator.entry("schedule-pause", name, self._at(now_ms)))
            self._plans.put_schedules(stored | {name: rules.paused(before)})
        return True

    def _resume_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool:
        with self._open_table():
            at_ms, stored = self._at(now_ms), self._plans.schedules()
            before = stored.get(name)
            if before is None or not before.paused:
                return False
            after = rules.resumed(before, at_ms)
            self._store.record(operator.entry("schedule-resume", name, at_ms))
            self._plans.put_schedules(stored | {name: after})
        return True

    def schedules(self) -> list[Schedule]:
        """As they are stored, those that cannot fire included."""
        with self._store.table():
            stored = self._plans.schedules()
        return [stored[name] for name in sorted(stored)]

    def soonest(self) -> int | None:
        """Of the schedules that can fire."""
        return soonest(self.schedules())

    def _tick(self, now_ms: int | None) -> list[Fire]:
        with self._open_table() as table:
            ticked = planning.tick(self._store, self._plans, table, self._at(now_ms))
            return planning.save(self._store, self._plans, table, ticked)

    def _run_schedule(self, name: str, operator: Operator, now_ms: int | None) -> Fire | None:
        with self._open_table() as table:
            at_ms = self._at(now_ms)
            ticked = planning.run(self._store, self._plans, table, name, at_ms)
            if ticked is None:
                return None
            if ticked.jobs:
                self._store.record(operator.entry("schedule-run", name, at_ms))
            return planning.save(self._store, self._plans, table, ticked)[0]

    def _end_with(self, paused: Sequence[str], planned: Sequence[Schedule]) -> None:
        """Store what came with a copy."""
        if paused:
            self._plans.put_paused(paused)
        if planned:
            self._plans.put_schedules({schedule.name: schedule for schedule in planned})
