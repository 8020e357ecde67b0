"""The verbs that both SQL ledgers do by the same statements; the others are in the engines' own ``ledger.py``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from ...model.inputs import check_name
from ...model.job import Job
from ...model.queue_counts import QueueCounts
from ...model.records import AuditEntry, Row, Schedule
from ...model.schedules import check_schedule, first_boundary
from ..arguments import checked
from ..closing import COPY_BEGIN, COPY_END, SEAL
from ..moves import MovingVerbs
from ..operator import Operator
from . import (
    audit as auditing,
)
from . import (
    reads as looking,
)
from . import (
    schedules as scheduling,
)
from . import (
    transfer,
)
from .transaction import Transaction


class SqlLedger(MovingVerbs):
    """A part of ``SqliteLedger`` and ``PostgresLedger``; see the protocol for what each verb promises."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the ledger lies, as people may see it."""

    @abstractmethod
    def now_ms(self) -> int:
        """The ledger's own clock."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Transaction]:
        """For one statement that reads."""

    @abstractmethod
    def _acting(
        self, now_ms: int | None, *, even_sealed: bool = False, even_copying: bool = False
    ) -> AbstractContextManager[tuple[Transaction, int]]:
        """A transaction for what a person changes, and its instant; idle workers are woken to look at it.

        Though the ledger is closed, where that is said; and then while no other transaction that writes is under way.
        """

    @abstractmethod
    def _kept_text(self, text: str) -> str | bytes:
        """A text as the engine keeps it: any that UTF-8 can carry, NUL included."""

    # -- looking --

    @checked
    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        """By one statement over both tables."""
        at_ms = self.now_ms() if now_ms is None else now_ms
        with self._reading() as transaction:
            return looking.queue_counts(transaction, now_ms=at_ms, since_ms=since_ms)

    @checked
    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        """From the table of the dead alone."""
        with self._reading() as transaction:
            return looking.latest_deaths(transaction, limit)

    @checked
    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """From the end of the table."""
        with self._reading() as transaction:
            return auditing.audit(transaction, id, limit)

    # -- moving to another kind of ledger --

    @checked
    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        """A field of fencepost_meta, which every transaction that writes looks at first."""
        with self._acting(now_ms, even_sealed=True) as (transaction, at_ms):
            if transfer.seal(transaction, self.location, destination, at_ms):
                auditing.record(transaction, Operator(actor, None).entry(SEAL, destination, at_ms))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        with self._reading() as transaction:
            return transfer.closing(transaction).sealed_for

    @checked
    def begin_copy(self, source: str, *, actor: str | None = None, now_ms: int | None = None) -> bool:
        """Another field of fencepost_meta."""
        with self._acting(now_ms, even_copying=True) as (transaction, at_ms):
            begun = transfer.begin_copy(transaction, self.location, source)
            if begun:
                auditing.record(transaction, Operator(actor, None).entry(COPY_BEGIN, source, at_ms))
            return begun

    @checked
    def end_copy(
        self,
        source: str,
        *,
        paused: Sequence[str] = (),
        schedules: Sequence[Schedule] = (),
        actor: str | None = None,
        now_ms: int | None = None,
    ) -> bool:
        """Pauses and schedules come in the transaction that lets work begin."""
        with self._acting(now_ms, even_copying=True) as (transaction, at_ms):
            if not transfer.end_copy(transaction, source):
                return False
            for queue in paused:
                if scheduling.pause(transaction, queue):
                    entry = Operator(actor, f"copied from {source}").entry("pause", queue, at_ms)
                    auditing.record(transaction, entry)
            for schedule in schedules:
                scheduling.register(transaction, schedule, self._kept_text(schedule.text))
            auditing.record(transaction, Operator(actor, None).entry(COPY_END, source, at_ms))
            return True

    def copying_from(self) -> str | None:
        """The source of the copy that has not ended."""
        with self._reading() as transaction:
            return transfer.closing(transaction).copying_from

    def check_room(self, rows: Iterable[Row]) -> None:
        """There is room for as many as the disk has."""

    # -- pauses and schedules --

    @checked
    def pause(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """One row for each paused queue."""
        check_name(queue, "queue")
        with self._acting(now_ms) as (transaction, at_ms):
            done = scheduling.pause(transaction, queue)
            if done:
                auditing.record(transaction, Operator(actor, reason).entry("pause", queue, at_ms))
            return done

    @checked
    def resume(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``pause``."""
        check_name(queue, "queue")
        with self._acting(now_ms) as (transaction, at_ms):
            done = scheduling.resume(transaction, queue)
            if done:
                auditing.record(transaction, Operator(actor, reason).entry("resume", queue, at_ms))
            return done

    def paused(self) -> list[str]:
        """By name."""
        with self._reading() as transaction:
            return scheduling.paused(transaction)

    @checked
    def register_schedule(self, schedule: Schedule, *, now_ms: int | None = None) -> None:
        """An upsert by name."""
        check_schedule(schedule)
        with self._acting(now_ms) as (transaction, at_ms):
            first = replace(schedule, next_ms=first_boundary(schedule, at_ms))
            scheduling.register(transaction, first, self._kept_text(schedule.text))

    def unregister_schedule(self, name: str) -> bool:
        """Jobs that it has fired stay."""
        with self._acting(None) as (transaction, _):
            return scheduling.unregister(transaction, name)

    def schedules(self) -> list[Schedule]:
        """As they are stored, those that cannot fire included."""
        with self._reading() as transaction:
            return scheduling.schedules(transaction)

    def soonest(self) -> int | None:
        """Of the schedules that can fire."""
        with self._reading() as transaction:
            return scheduling.soonest(transaction)
