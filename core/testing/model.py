"""The executable model: an in-memory ledger that is nothing but ``job.py`` and a few dictionaries.

It is the oracle that other ledgers are compared with, and what the conformance suite itself is checked on. It
keeps what its ``Capabilities`` say, so that it can imitate any kind of ledger. Nothing here is fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ..errors import IdentityConflict, Unsupported
from ..ledgers.closing import (
    COPY_BEGIN,
    COPY_END,
    SEAL,
    Closing,
    holds_something,
    live_lease,
)
from ..ledgers.operator import Operator
from ..model import job as rules
from ..model import schedules as planning
from ..model import ticks
from ..model.records import (
    Applied,
    Export,
    Fire,
    Row,
    Schedule,
)
from ..model.ticks import Ticked
from .model_jobs import ModelJobs
from .model_store import as_kept, place_of, same_row


class ModelLedger(ModelJobs):
    """The whole ``Ledger`` protocol in memory."""

    # -- moving a whole ledger to another kind --

    def _seal(self, destination: str, operator: Operator, now_ms: int | None) -> None:
        with self._store.changed:
            if self._store.closing.sealed_for == destination:
                return
            self._store.closing.refuse("this model")
            at_ms = self._at(now_ms)
            for job in self._store.jobs.values():
                if rules.lease_valid(job, job.version, at_ms):
                    raise live_lease("this model", job.id)
            self._close(Closing(sealed_for=destination), SEAL, destination, operator, at_ms)

    def sealed_for(self) -> str | None:
        with self._store.changed:
            return self._store.closing.sealed_for

    def _begin_copy(self, source: str, operator: Operator, now_ms: int | None) -> bool:
        with self._store.changed:
            if self._store.closing.copying_from == source:
                return False
            self._store.closing.refuse("this model")
            there = [*self._store.inputs, *self._store.receipts, *self._store.schedules]
            if there:
                raise holds_something("this model", there[0])
            self._close(Closing(copying_from=source), COPY_BEGIN, source, operator, self._at(now_ms))
            return True

    def _end_copy(
        self,
        source: str,
        paused: Sequence[str],
        planned: Sequence[Schedule],
        operator: Operator,
        now_ms: int | None,
    ) -> bool:
        if (paused or planned) and not self.capabilities.has_schedules:
            raise Unsupported("this ledger has no schedules or pauses")
        with self._store.writing(even_copying=True):
            if self._store.closing.copying_from != source:
                return False
            self._store.closing = Closing()
            for queue in paused:
                self._pause(queue, operator, now_ms)
            self._store.schedules |= {schedule.name: schedule for schedule in planned}
            self._close(Closing(), COPY_END, source, operator, self._at(now_ms))
            return True

    def copying_from(self) -> str | None:
        with self._store.changed:
            return self._store.closing.copying_from

    def _close(self, closing: Closing, action: str, other: str, operator: Operator, at_ms: int) -> None:
        self._store.closing = closing
        self._store.audit.append(replace(operator, reason=None).entry(action, other, at_ms))
        self._store.committed()

    def _export_rows(self, after: str | None, limit: int) -> Export:
        with self._store.changed:
            others = [id for id in self._store.inputs if id not in self._store.jobs]
            others += [id for id in self._store.receipts if id not in self._store.inputs]
            start = place_of(after)
            ids = [*self._store.jobs, *others]
            more = len(ids) > start + limit
            return Export(
                [self._store.row(id) for id in ids[start : start + limit]],
                str(start + limit) if more else None,
            )

    def check_room(self, rows: Iterable[Row]) -> None:
        pass

    def import_rows(self, rows: Sequence[Row], *, copy_of: str | None = None) -> int:
        with self._store.writing(even_copying=True):
            if copy_of is not None:
                self._store.closing.require_copy("this model", copy_of)
            kept = [
                row if row.job is None else replace(row, job=as_kept(row.job, self.capabilities))
                for row in rows
            ]
            fresh = [row for row in kept if self._store.row(row.id) == Row(row.id, None, None, None, None)]
            for row in kept:
                if row not in fresh and not same_row(row, self._store.row(row.id)):
                    raise IdentityConflict(
                        f"id {row.id!r} is there already, and differs from what is imported"
                    )
            for row in fresh:
                self._import(row)
            return len(fresh)

    def _import(self, row: Row) -> None:
        if row.input is not None:
            self._store.inputs[row.id] = row.input
        if row.receipt is not None:
            self._store.receipts[row.id] = row.receipt
        if row.purged_version is not None:
            self._store.purged[row.id] = row.purged_version
        if row.job is not None:
            self._put(row.job)
        self._store.committed()

    # -- pauses and schedules --

    def _pause(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        with self._writing_schedules():
            if queue in self._store.paused:
                return False
            self._store.paused.add(queue)
            self._store.audit.append(operator.entry("pause", queue, self._at(now_ms)))
            self._store.committed()
            return True

    def _resume(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        with self._writing_schedules():
            if queue not in self._store.paused:
                return False
            self._store.paused.remove(queue)
            self._store.audit.append(operator.entry("resume", queue, self._at(now_ms)))
            self._store.committed()
            return True

    def paused(self) -> list[str]:
        with self._reading_schedules():
            return sorted(self._store.paused)

    def _register_schedule(self, schedule: Schedule, now_ms: int | None) -> None:
        with self._writing_schedules():
            before = self._store.schedules.get(schedule.name)
            self._put_schedule(planning.registered(before, schedule, self._at(now_ms)))

    def unregister_schedule(self, name: str) -> bool:
        with self._writing_schedules():
            return self._store.schedules.pop(name, None) is not None

    def _apply_schedules(
        self, wanted: list[Schedule], owner: str, operator: Operator, dry_run: bool, now_ms: int | None
    ) -> Applied:
        with self._writing_schedules():
            at_ms, stored = self._at(now_ms), dict(self._store.schedules)
            done = planning.applied(stored.values(), wanted, owner)
            changed = [
                planning.registered(stored.get(schedule.name), schedule, at_ms)
                for schedule in wanted
                if schedule.name not in done.unchanged
            ]
            if not dry_run:
                for schedule in changed:
                    self._put_schedule(schedule)
                for name in done.removed:
                    del self._store.schedules[name]
                for action, names in (
                    ("add", done.added),
                    ("change", done.changed),
                    ("remove", done.removed),
                ):
                    self._store.audit += [operator.entry(f"schedule-{action}", name, at_ms) for name in names]
            return done

    def _pause_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool:
        with self._writing_schedules():
            before = self._store.schedules.get(name)
            if before is None or before.paused:
                return False
            self._put_schedule(planning.paused(before))
            self._store.audit.append(operator.entry("schedule-pause", name, self._at(now_ms)))
            return True

    def _resume_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool:
        with self._writing_schedules():
            before = self._store.schedules.get(name)
            if before is None or not before.paused:
                return False
            self._put_schedule(planning.resumed(before, self._at(now_ms)))
            self._store.audit.append(operator.entry("schedule-resume", name, self._at(now_ms)))
            return True

    def schedules(self) -> list[Schedule]:
        with self._reading_schedules():
            return [self._store.schedules[name] for name in sorted(self._store.schedules)]

    def _tick(self, now_ms: int | None) -> list[Fire]:
        with self._writing_schedules():
            at_ms = self._at(now_ms)
            return self._save(ticks.tick(self.schedules(), at_ms, self._known), at_ms)

    def _run_schedule(self, name: str, operator: Operator, now_ms: int | None) -> Fire | None:
        with self._writing_schedules():
            at_ms, schedule = self._at(now_ms), self._store.schedules.get(name)
            if schedule is None:
                return None
            ticked = ticks.run_now(schedule, at_ms, self._known)
            if ticked.jobs:
                self._store.audit.append(operator.entry("schedule-run", name, at_ms))
            return self._save(ticked, at_ms)[0]

    def soonest(self) -> int | None:
        return ticks.soonest(self.schedules())

    def _known(self, ids: list[str]) -> dict[str, bool]:
        finished = (rules.COMPLETED, rules.DEAD)
        return {
            id: id in self._store.jobs and self._store.jobs[id].state not in finished
            for id in ids
            if id in self._store.inputs
        }

    def _save(self, ticked: Ticked, now_ms: int) -> list[Fire]:
        for job in ticked.jobs:
            self._add(job, now_ms)
        for schedule in ticked.advanced:
            self._put_schedule(schedule)
        return ticked.fires

    def _put_schedule(self, schedule: Schedule) -> None:
        self._store.schedules[schedule.name] = schedule
        self._store.committed()

    @contextmanager
    def _reading_schedules(self) -> Iterator[None]:
        if not self.capabilities.has_schedules:
            raise Unsupported("this ledger has no schedules or pauses; a SQLite or PostgreSQL ledger has")
        with self._store.changed:
            yield

    @contextmanager
    def _writing_schedules(self) -> Iterator[None]:
        with self._reading_schedules(), self._store.writing():
            yield
