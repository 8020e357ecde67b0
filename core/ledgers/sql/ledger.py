"""The verbs of both SQL ledgers: each is one transaction around functions that know nothing of transactions.

What an engine does by statements of its own is in its ``Engine``. Claims and settlements are the engines' own verbs:
PostgreSQL sends their statements along with the beginning of the transaction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic

from ...model.inputs import Input, Request
from ...model.job import Job, State
from ...model.query import ALL_JOBS, JobQuery
from ...model.queue_counts import QueueCounts
from ...model.receipts import Published, Receipt
from ...model.records import Applied, AuditEntry, Enqueued, Export, Fire, Page, Row, Schedule, Swept
from ...model.ticks import soonest
from ..closing import COPY_BEGIN, COPY_END, SEAL
from ..operator import ManualRule, Operator
from ..verbs import LedgerVerbs, Rule
from . import audit, reads, schedules, transfer
from .engine import Engine
from .moves import forget, move
from .receipts import receipts
from .records import Records
from .sweep import Sweep
from .transaction import AnyTransaction, Database, instant


class SqlLedger(LedgerVerbs, Generic[AnyTransaction]):
    """A part of ``SqliteLedger`` and ``PostgresLedger``; ``protocol.py`` says what each verb promises."""

    _database: Database[AnyTransaction]
    _engine: Engine[AnyTransaction]

    @property
    def location(self) -> str:
        """Where the ledger lies, as ``--store`` takes it, but without a password."""
        return self._database.location

    # -- enqueue and claim --

    def _enqueue(self, request: Request, connection: Any, now_ms: int | None) -> list[Enqueued]:
        opened = self._database.write() if connection is None else self._database.join(connection)
        with opened as transaction:
            return self._engine.enqueue(transaction, request, instant(transaction, now_ms))

    def _read_inputs(self, ids: list[str]) -> dict[str, Input]:
        with self._database.read() as transaction:
            return reads.read_inputs(transaction, ids)

    def _receipts(self, ids: list[str]) -> dict[str, Receipt]:
        with self._database.read() as transaction:
            return receipts(transaction, ids)

    # -- moves --

    def publish(self, receipt: Receipt) -> Published:
        """Insert it, or compare it with the one that is there."""
        with self._database.write() as transaction:
            return self._engine.publish(transaction, receipt)

    def _complete(self, id: str, version: int, now_ms: int | None) -> bool:
        # By one statement, because it is the move that a worker makes most often.
        with self._database.write() as transaction:
            return self._engine.complete(transaction, id, version, instant(transaction, now_ms))

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            return move(transaction, self._engine, id, rule, instant(transaction, now_ms)) is not None

    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            records = Records(transaction, self._engine)
            at_ms = instant(transaction, now_ms)
            moved = move(transaction, self._engine, id, lambda job, now_ms: rule(job, now_ms, records), at_ms)
            if moved is None:
                return False
            audit.record(transaction, operator.entry(action, id, at_ms, *moved))
            return True

    def _purge(self, id: str, operator: Operator, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            dead = forget(transaction, self._engine, id)
            if dead is None:
                return False
            audit.record(transaction, operator.entry("purge", id, instant(transaction, now_ms), dead))
            return True

    def _sweep_expired(self, queue: str | None, now_ms: int | None) -> Swept:
        sweep = Sweep(self._engine, queue)
        while not sweep.done:
            with self._database.write() as transaction:
                now_ms = instant(transaction, now_ms)
                sweep.step(transaction, now_ms)
        return sweep.swept

    # -- looking --

    def get_job(self, id: str) -> Job | None:
        """By one statement over both tables, so that a move between them cannot hide the job."""
        with self._database.read() as transaction:
            return reads.get_job(transaction, id)

    def jobs(self, query: JobQuery = ALL_JOBS) -> Page:
        """The cursor is the place in the order of enqueue."""
        with self._database.snapshot() as transaction:
            return self._engine.jobs(transaction, query)

    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """By one statement over both tables."""
        with self._database.read() as transaction:
            return self._engine.counts(transaction, queue)

    def _queue_counts(self, since_ms: int, now_ms: int | None) -> list[QueueCounts]:
        at_ms = self.now_ms() if now_ms is None else now_ms
        with self._database.read() as transaction:
            return reads.queue_counts(transaction, now_ms=at_ms, since_ms=since_ms)

    def _latest_deaths(self, limit: int) -> list[Job]:
        with self._database.read() as transaction:
            return reads.latest_deaths(transaction, limit)

    def _next_due_ms(self, queues: Sequence[str] | None, effects: Sequence[str] | None) -> int | None:
        with self._database.snapshot() as transaction:
            return self._engine.next_due_ms(transaction, queues, effects)

    def _audit(self, id: str | None, limit: int) -> list[AuditEntry]:
        with self._database.read() as transaction:
            return audit.audit(transaction, id, limit)

    # -- transferring to another kind of ledger --

    def _seal(self, destination: str, operator: Operator, now_ms: int | None) -> None:
        # A field of fencepost_meta, which every transaction that writes looks at first.
        with self._waking(now_ms, even_sealed=True) as (transaction, at_ms):
            if transfer.seal(transaction, self.location, destination, at_ms):
                audit.record(transaction, operator.entry(SEAL, destination, at_ms))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        with self._database.read() as transaction:
            return transfer.closing(transaction).sealed_for

    def _begin_copy(self, source: str, operator: Operator, now_ms: int | None) -> bool:
        with self._waking(now_ms, even_copying=True) as (transaction, at_ms):
            begun = transfer.begin_copy(transaction, self.location, source)
            if begun:
                audit.record(transaction, operator.entry(COPY_BEGIN, source, at_ms))
            return begun

    def _end_copy(
        self,
        source: str,
        paused: Sequence[str],
        planned: Sequence[Schedule],
        operator: Operator,
        now_ms: int | None,
    ) -> bool:
        # Pauses and schedules come in the transaction that lets work begin.
        with self._waking(now_ms, even_copying=True) as (transaction, at_ms):
            if not transfer.end_copy(transaction, source):
                return False
            for queue in paused:
                if schedules.pause(transaction, queue):
                    audit.record(transaction, operator.entry("pause", queue, at_ms))
            for schedule in planned:
                schedules.put(transaction, schedule)
            ended = replace(operator, reason=None)
            audit.record(transaction, ended.entry(COPY_END, source, at_ms))
            return True

    def copying_from(self) -> str | None:
        """The source of the copy that has not ended."""
        with self._database.read() as transaction:
            return transfer.closing(transaction).copying_from

    def _export_rows(self, after: str | None, limit: int) -> Export:
        with self._database.snapshot() as transaction:
            return transfer.export_rows(
                transaction, after, limit, lambda query: self._engine.jobs(transaction, query)
            )

    def check_room(self, rows: Iterable[Row]) -> None:
        """There is room for as many as the disk has."""

    def import_rows(self, rows: Sequence[Row], *, copy_of: str | None = None) -> int:
        """In one transaction, while no other one writes."""
        with self._waking(None, even_copying=True) as (transaction, _):
            transfer.require_copy(transaction, self.location, copy_of)
            return self._engine.import_rows(transaction, rows)

    # -- pauses and schedules --

    def _pause(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        with self._waking(now_ms) as (transaction, at_ms):
            done = schedules.pause(transaction, queue)
            if done:
                audit.record(transaction, operator.entry("pause", queue, at_ms))
            return done

    def _resume(self, queue: str, operator: Operator, now_ms: int | None) -> bool:
        with self._waking(now_ms) as (transaction, at_ms):
            done = schedules.resume(transaction, queue)
            if done:
                audit.record(transaction, operator.entry("resume", queue, at_ms))
        # Claims have passed over its jobs. What is not returned here, because this process ends, a claim returns.
        more = done
        while more:
            with self._waking(now_ms) as (transaction, _):
                more = self._engine.give_back(transaction, queue)
        return done

    def paused(self) -> list[str]:
        """By name."""
        with self._database.read() as transaction:
            return schedules.paused(transaction)

    def _register_schedule(self, schedule: Schedule, now_ms: int | None) -> None:
        with self._waking(now_ms) as (transaction, at_ms):
            schedules.register(transaction, schedule, at_ms)

    def _apply_schedules(
        self, wanted: list[Schedule], owner: str, operator: Operator, dry_run: bool, now_ms: int | None
    ) -> Applied:
        with self._waking(now_ms) as (transaction, at_ms):
            return schedules.apply(
                transaction, wanted, owner, operator=operator, dry_run=dry_run, now_ms=at_ms
            )

    def _pause_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool:
        with self._waking(now_ms) as (transaction, at_ms):
            done = schedules.pause_schedule(transaction, name)
            if done:
                audit.record(transaction, operator.entry("schedule-pause", name, at_ms))
            return done

    def _resume_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool:
        with self._waking(now_ms) as (transaction, at_ms):
            done = schedules.resume_schedule(transaction, name, at_ms)
            if done:
                audit.record(transaction, operator.entry("schedule-resume", name, at_ms))
            return done

    def unregister_schedule(self, name: str) -> bool:
        """Jobs that it has fired stay."""
        with self._waking(None) as (transaction, _):
            return schedules.unregister(transaction, name)

    def schedules(self) -> list[Schedule]:
        """As they are stored, those that cannot fire included."""
        with self._database.read() as transaction:
            return schedules.schedules(transaction)

    def soonest(self) -> int | None:
        """Of the schedules that can fire."""
        with self._database.read() as transaction:
            return soonest(schedules.schedules(transaction))

    def _tick(self, now_ms: int | None) -> list[Fire]:
        # It fires and advances in one transaction; where nothing is due it writes nothing.
        with self._database.write() as transaction:
            at_ms = instant(transaction, now_ms)
            return schedules.tick(
                transaction, at_ms, lambda jobs: self._engine.enqueue(transaction, jobs, at_ms)
            )

    def _run_schedule(self, name: str, operator: Operator, now_ms: int | None) -> Fire | None:
        with self._waking(now_ms) as (transaction, at_ms):
            fire = schedules.run(
                transaction, name, at_ms, lambda jobs: self._engine.enqueue(transaction, jobs, at_ms)
            )
            if fire is not None and fire.created:
                audit.record(transaction, operator.entry("schedule-run", name, at_ms))
            return fire

    @abstractmethod
    def now_ms(self) -> int:
        """The ledger's own clock."""

    @contextmanager
    def _waking(
        self, now_ms: int | None, *, even_sealed: bool = False, even_copying: bool = False
    ) -> Iterator[tuple[AnyTransaction, int]]:
        """A transaction for what a person changes, and its instant; idle workers are woken to look at it."""
        with self._database.write(even_sealed=even_sealed, even_copying=even_copying) as transaction:
            transaction.wake()
            yield transaction, instant(transaction, now_ms)
