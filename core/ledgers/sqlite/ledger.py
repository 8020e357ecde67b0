"""The SQLite ledger's verbs: each is one transaction around functions that know nothing of transactions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from ... import job as rules
from ...arguments import checked
from ...clock import Clock, wall_ms
from ...documents import JSON
from ...errors import InvalidInput
from ...filters import ALL_JOBS, JobFilter
from ...inputs import Input, NewJob, check_name, check_request
from ...job import ClaimRequest, Decision, Job, State
from ...ledger import AuditEntry, Capabilities, Enqueued, Export, Fire, Page, Row, Schedule, Swept
from ...overview import QueueCounts
from ...receipts import Published, Receipt, Settled, Settlement
from ...scheduler import check_schedule
from . import looking, operating, receipting, scheduling, sweeping, transfer
from .claiming import Claim
from .database import Database, Synchronous
from .enqueueing import enqueue
from .moving import Rule, move
from .watch import Watch


class SqliteLedger:
    """Jobs in one SQLite file, for millions of jobs on one machine; see contract §6.

    The file is made when it is first needed. Threads may share the object: each has a connection of its own, and
    so has a forked child.

    Args:
        path: of the database file; an application may keep its own tables in it.
        synchronous: FULL keeps every commit through a power cut; NORMAL may lose the last ones, OFF is for tests.
        busy_timeout_ms: how long a verb waits for the write lock before it raises LedgerBusy.
        clock: what ``now_ms=None`` means; read under the write lock.
    """

    capabilities: Final = Capabilities(
        has_schedules=True,
        can_join_transaction=True,
        keeps_enqueue_time=True,
        keeps_claim_details=True,
        has_line_enqueue=True,
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "FULL",
        busy_timeout_ms: int = 30_000,
        clock: Clock = wall_ms,
    ) -> None:
        name = os.fspath(path)
        if not name or "\0" in name:
            raise InvalidInput(f"{name!r} is no path of a database file")
        self._database = Database(
            os.path.abspath(name), synchronous=synchronous, busy_timeout_ms=busy_timeout_ms
        )
        self._watch = Watch(self._database)
        self._clock = clock

    @property
    def location(self) -> str:
        """The absolute path of the file."""
        return self._database.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of all threads, each when it rests."""
        self._database.close()
        self._watch.close()

    def now_ms(self) -> int:
        """The clock that the ledger was opened with; the wall clock unless said."""
        return self._clock()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until another commit than those known when the last claim began, or the time-out."""
        return self._watch.wait(timeout_s)

    # -- enqueue --

    def enqueue(
        self, jobs: Iterable[NewJob], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        """With ``connection``, a part of that sqlite3 connection's transaction, which the caller ends."""
        request = check_request(jobs)
        opened = self._database.write() if connection is None else self._database.join(connection)
        with opened as transaction:
            return enqueue(transaction, request, self._at(now_ms))

    # -- claim --

    @checked
    def claim(
        self,
        *,
        claimant: str,
        lease_ms: int,
        max_attempts: int,
        limit: int = 1,
        queues: Sequence[str] | None = None,
        effects: Sequence[str] | None = None,
        exhausted_error: str = rules.EXHAUSTED,
        expired_error: str = rules.EXPIRED,
        lost_error: str = rules.ATTEMPT_LOST,
        now_ms: int | None = None,
    ) -> list[Job]:
        """Promote, settle and pick in one transaction; a claim that finds nothing writes nothing."""
        request = ClaimRequest(
            claimant=claimant,
            lease_ms=lease_ms,
            max_attempts=max_attempts,
            limit=limit,
            queues=None if queues is None else tuple(queues),
            effects=None if effects is None else tuple(effects),
            exhausted_error=exhausted_error,
            expired_error=expired_error,
            lost_error=lost_error,
        )
        return self.settle_and_claim((), request, now_ms=now_ms)[1]

    @checked
    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        """Settlements and claim in one commit; nothing is claimed where a settlement was refused."""
        self._watch.mark()
        while True:
            with self._database.write() as transaction:
                now_ms = self._at(now_ms)
                claim = Claim(transaction, request, now_ms)
                if claim.promote():
                    continue  # this step is committed by itself, and others may come in between
                settled = receipting.settle(transaction, settlements, now_ms) if settlements else []
                if not all(item.completed for item in settled):
                    return settled, []
                return settled, claim.take()

    def read_inputs(self, ids: Iterable[str]) -> dict[str, Input]:
        """By one statement; a job without its input is corrupt."""
        with self._database.read() as transaction:
            return looking.read_inputs(transaction, ids)

    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        """By one statement."""
        with self._database.read() as transaction:
            return receipting.receipts(transaction, ids)

    # -- the holder's moves --

    @checked
    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``job.begin``."""
        return self._move(id, lambda job, now_ms: rules.begin(job, version, now_ms=now_ms), now_ms)

    @checked
    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        """See ``job.heartbeat``; one that moves nothing writes nothing."""
        return self._move(
            id, lambda job, now_ms: rules.heartbeat(job, version, now_ms=now_ms, extend_ms=extend_ms), now_ms
        )

    def publish(self, receipt: Receipt) -> Published:
        """Insert it, or compare it with the one that is there."""
        with self._database.write() as transaction:
            return receipting.publish(transaction, receipt)

    @checked
    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``job.complete``."""
        with self._database.write() as transaction:
            return receipting.complete(transaction, id, version, self._at(now_ms))

    @checked
    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """In one commit, each item for itself."""
        if not settlements:
            return []
        with self._database.write() as transaction:
            return receipting.settle(transaction, settlements, self._at(now_ms))

    @checked
    def retry(
        self,
        id: str,
        version: int,
        *,
        run_at_ms: int | None,
        error: str | None,
        max_attempts: int,
        exhausted_error: str = rules.EXHAUSTED,
        now_ms: int | None = None,
    ) -> bool:
        """See ``job.retry``."""

        def rule(job: Job, now_ms: int) -> Job | None:
            return rules.retry(
                job,
                version,
                now_ms=now_ms,
                run_at_ms=run_at_ms,
                error=error,
                max_attempts=max_attempts,
                exhausted_error=exhausted_error,
            )

        return self._move(id, rule, now_ms)

    @checked
    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``job.fail``."""
        return self._move(
            id, lambda job, now_ms: rules.fail(job, version, now_ms=now_ms, error=error), now_ms
        )

    @checked
    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``job.release``."""
        return self._move(id, lambda job, now_ms: rules.release(job, version, now_ms=now_ms), now_ms)

    @checked
    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``job.hold``."""
        return self._move(
            id, lambda job, now_ms: rules.hold(job, version, now_ms=now_ms, error=error), now_ms
        )

    # -- the operator's moves --

    @checked
    def cancel(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        error: str = rules.CANCELLED,
        now_ms: int | None = None,
    ) -> bool:
        """See ``job.cancel``."""
        with self._database.write() as transaction:
            who = operating.Operator(actor, reason, self._at(now_ms))
            return operating.cancel(transaction, id, who, error=error)

    @checked
    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``job.redrive``."""
        with self._database.write() as transaction:
            return operating.redrive(transaction, id, operating.Operator(actor, reason, self._at(now_ms)))

    @checked
    def resolve(
        self,
        id: str,
        *,
        decision: Decision,
        outcome: Mapping[str, JSON] | None = None,
        actor: str | None = None,
        reason: str | None = None,
        error: str = rules.FAILED_BY_OPERATOR,
        now_ms: int | None = None,
    ) -> bool:
        """See ``job.resolve``."""
        with self._database.write() as transaction:
            who = operating.Operator(actor, reason, self._at(now_ms))
            return operating.resolve(transaction, id, who, decision=decision, outcome=outcome, error=error)

    @checked
    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Keep nothing of the dead job but its version, its input and its receipt."""
        with self._database.write() as transaction:
            return operating.purge(transaction, id, operating.Operator(actor, reason, self._at(now_ms)))

    @checked
    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """In transactions of a thousand jobs; what this sweep buries is not purged by it."""
        purged = expired = 0
        purging = True
        while True:
            with self._database.write() as transaction:
                now_ms = self._at(now_ms)
                step = sweeping.purge_step(transaction, queue, now_ms) if purging else 0
                purged += step
                purging = step == sweeping.STEP
                if purging:
                    continue
                step = sweeping.expire_step(transaction, queue, now_ms)
                expired += step
                if step < sweeping.STEP:
                    return Swept(expired, purged)

    # -- looking --

    def get_job(self, id: str) -> Job | None:
        """By one statement over both tables."""
        with self._database.read() as transaction:
            return looking.get_job(transaction, id)

    @checked
    def jobs(
        self,
        *,
        states: Sequence[State] | None = None,
        queue: str | None = None,
        effect: str | None = None,
        where: JobFilter = ALL_JOBS,
        after: str | None = None,
        limit: int = 1000,
    ) -> Page:
        """The cursor is the place in the order of enqueue."""
        with self._database.read() as transaction:
            return looking.jobs(
                transaction, states=states, queue=queue, effect=effect, where=where, after=after, limit=limit
            )

    @checked
    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """By one statement over both tables."""
        with self._database.read() as transaction:
            return looking.counts(transaction, queue)

    @checked
    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        """By one statement over both tables."""
        with self._database.read() as transaction:
            return looking.queue_counts(transaction, now_ms=self._at(now_ms), since_ms=since_ms)

    @checked
    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        """From the table of the dead alone."""
        with self._database.read() as transaction:
            return looking.latest_deaths(transaction, limit)

    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        """A paused queue counts only for what a claim would settle in it."""
        with self._database.read() as transaction:
            return looking.next_due_ms(transaction, queues, effects)

    @checked
    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """From the end of the table."""
        with self._database.read() as transaction:
            return looking.audit(transaction, id, limit)

    # -- moving to another kind of ledger --

    @checked
    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        """A field of fencepost_meta, which every transaction that writes looks at first."""
        with self._database.write(even_sealed=True) as transaction:
            transfer.seal(transaction, destination, actor, self._at(now_ms))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        with self._database.read() as transaction:
            destination: str | None = transaction.value("sealed_for")
            return destination

    @checked
    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Jobs in order of enqueue, then the ids without a job in the order of their names."""
        with self._database.read() as transaction:
            return transfer.export_rows(transaction, after, limit)

    def check_room(self, rows: Iterable[Row]) -> None:
        """There is room for as many as the disk has."""

    def import_rows(self, rows: Sequence[Row]) -> int:
        """In one transaction."""
        with self._database.write() as transaction:
            return transfer.import_rows(transaction, rows)

    # -- pauses and schedules --

    @checked
    def pause(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """One row for each paused queue."""
        check_name(queue, "queue")
        with self._database.write() as transaction:
            return operating.pause(transaction, queue, operating.Operator(actor, reason, self._at(now_ms)))

    @checked
    def resume(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``pause``."""
        check_name(queue, "queue")
        with self._database.write() as transaction:
            return operating.resume(transaction, queue, operating.Operator(actor, reason, self._at(now_ms)))

    def paused(self) -> list[str]:
        """By name."""
        with self._database.read() as transaction:
            return [queue for (queue,) in transaction.rows("paused")]

    @checked
    def register_schedule(self, schedule: Schedule, *, now_ms: int | None = None) -> None:
        """An upsert by name."""
        check_schedule(schedule)
        with self._database.write() as transaction:
            scheduling.register(transaction, schedule, self._at(now_ms))

    def unregister_schedule(self, name: str) -> bool:
        """Jobs that it has fired stay."""
        with self._database.write() as transaction:
            return transaction.change("unregister_schedule", (name,)) == 1

    def schedules(self) -> list[Schedule]:
        """As they are stored, those that cannot fire included."""
        with self._database.read() as transaction:
            return scheduling.schedules(transaction)

    @checked
    def tick(self, *, now_ms: int | None = None) -> list[Fire]:
        """Fires and advances in one transaction; where nothing is due it writes nothing."""
        with self._database.write() as transaction:
            return scheduling.tick(transaction, self._at(now_ms))

    def soonest(self) -> int | None:
        """Of the schedules that can fire."""
        with self._database.read() as transaction:
            return scheduling.soonest(transaction)

    # -- shared by the verbs --

    def _at(self, now_ms: int | None) -> int:
        return self._clock() if now_ms is None else now_ms

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            return move(transaction, id, rule, self._at(now_ms)) is not None
