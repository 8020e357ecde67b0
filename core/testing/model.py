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
from ..model.records import (
    Export,
    Fire,
    Row,
    Schedule,
)
from ..model.schedules import (
    boundaries,
    fired_job,
    first_boundary,
    parse_every,
)
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
            same = before is not None and before.every == schedule.every
            next_ms = (
                before.next_ms if before is not None and same else first_boundary(schedule, self._at(now_ms))
            )
            self._store.schedules[schedule.name] = replace(
                schedule, next_ms=next_ms, stamps=schedule.stamps.whole()
            )
            self._store.committed()

    def unregister_schedule(self, name: str) -> bool:
        with self._writing_schedules():
            return self._store.schedules.pop(name, None) is not None

    def schedules(self) -> list[Schedule]:
        with self._reading_schedules():
            return [self._store.schedules[name] for name in sorted(self._store.schedules)]

    def _tick(self, now_ms: int | None) -> list[Fire]:
        with self._writing_schedules():
            return [fire for schedule in self.schedules() for fire in self._fire(schedule, self._at(now_ms))]

    def _fire(self, schedule: Schedule, now_ms: int) -> Iterator[Fire]:
        passed, next_ms = boundaries(schedule.next_ms or 0, parse_every(schedule.every), now_ms)
        self._store.schedules[schedule.name] = replace(schedule, next_ms=next_ms)
        for boundary_ms in passed:
            new = fired_job(schedule, boundary_ms)
            created = new.id not in self._store.inputs
            if created:
                self._add(new, now_ms)
            yield Fire(schedule.name, new.id, boundary_ms, created)

    def soonest(self) -> int | None:
        return min((schedule.next_ms or 0 for schedule in self.schedules()), default=None)

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
