"""The PostgreSQL ledger's verbs: each is one transaction around functions that know nothing of transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from ... import job as rules
from ...arguments import checked
from ...documents import JSON
from ...filters import ALL_JOBS, JobFilter
from ...inputs import Input, NewJob, check_name, check_request
from ...job import ClaimRequest, Decision, Job, State
from ...ledger import AuditEntry, Capabilities, Enqueued, Export, Fire, Page, Row, Schedule, Swept
from ...overview import QueueCounts
from ...receipts import Published, Receipt, Settled, Settlement
from ...scheduler import check_schedule
from . import looking, operating, receipting, scheduling, sweeping, transfer
from .address import parse_address
from .claiming import Claim, lanes
from .database import Database
from .enqueueing import enqueue
from .moving import Rule, move
from .transaction import Transaction
from .watch import Watch


class PostgresLedger:
    """Jobs in a PostgreSQL database, for workers on many machines; see contract §6.

    The tables are made when they are first needed. Threads may share the object: each verb takes a connection of a
    pool, and so does a forked child, of a pool of its own. Nothing is kept in a session, so that a pooler in front
    may give each transaction another one.

    Args:
        url: as libpq takes it, ``postgresql://user:password@host:port/database?option=value``. Two options are
            ours: ``fencepost_schema=NAME`` and ``fencepost_listen=on|off``.
        schema: where the tables are, rather than what the URL says; ``public`` unless said.
        listen: whether to LISTEN for new jobs, rather than what the URL says; without it they are looked for ten
            times a second. A pooler that gives each transaction another session passes no notifications.
        max_connections: how many one process opens at most, besides the one that listens.
        timeout_s: how long a verb waits for one of them before it raises LedgerBusy.
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
        url: str,
        *,
        schema: str | None = None,
        listen: bool | None = None,
        max_connections: int = 10,
        timeout_s: float = 30.0,
    ) -> None:
        address = parse_address(url, schema=schema, listen=listen)
        self._database = Database(address, max_connections=max_connections, timeout_s=timeout_s)
        self._watch = Watch(self._database)

    @property
    def location(self) -> str:
        """The URL without its password."""
        return self._database.address.location

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, those in use when they are put back."""
        self._watch.close()
        self._database.close()

    def now_ms(self) -> int:
        """The database's clock."""
        with self._database.read() as transaction:
            now_ms: int = transaction.value("now_ms")
            return now_ms

    def wait(self, timeout_s: float) -> bool:
        """Sleep until there is news of a commit since the last claim began, or the time-out."""
        return self._watch.wait(timeout_s)

    # -- enqueue --

    def enqueue(
        self, jobs: Iterable[NewJob], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        """With ``connection``, a part of that psycopg connection's transaction, which the caller ends."""
        request = check_request(jobs)
        opened = self._database.write() if connection is None else self._database.join(connection)
        with opened as transaction:
            return enqueue(transaction, request, _at(transaction, now_ms))

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
        settled: list[Settled] = []
        while True:
            batch = receipting.Batch(() if settled else settlements, now_ms)
            with self._database.write_ahead(lanes(request, now_ms), *batch.ahead) as (transaction, answers):
                self._watch.saw(transaction.meta.snapshot)
                at_ms = _at(transaction, now_ms)
                found, *rows = answers
                settled += batch.settled(transaction, rows, at_ms)
                if not all(item.completed for item in settled):
                    return settled, []
                claim = Claim(transaction, request, at_ms, found)
                if not claim.promote():
                    return settled, claim.take()
                # This step is committed by itself, and others may come in between.

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
            return receipting.complete(transaction, id, version, _at(transaction, now_ms))

    @checked
    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """In one commit, each item for itself."""
        if not settlements:
            return []
        batch = receipting.Batch(settlements, now_ms)
        with self._database.write_ahead(*batch.ahead) as (transaction, rows):
            return batch.settled(transaction, rows, _at(transaction, now_ms))

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
            who = operating.Operator(actor, reason, _at(transaction, now_ms))
            return operating.cancel(transaction, id, who, error=error)

    @checked
    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``job.redrive``."""
        with self._database.write() as transaction:
            return operating.redrive(
                transaction, id, operating.Operator(actor, reason, _at(transaction, now_ms))
            )

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
            who = operating.Operator(actor, reason, _at(transaction, now_ms))
            return operating.resolve(transaction, id, who, decision=decision, outcome=outcome, error=error)

    @checked
    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Keep nothing of the dead job but its version, its input and its receipt."""
        with self._database.write() as transaction:
            return operating.purge(
                transaction, id, operating.Operator(actor, reason, _at(transaction, now_ms))
            )

    @checked
    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """In transactions of a thousand jobs; what this sweep buries is not purged by it."""
        purged = expired = 0
        purging = True
        while True:
            with self._database.write() as transaction:
                now_ms = _at(transaction, now_ms)
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
        with self._database.snapshot() as transaction:
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
            at_ms = transaction.value("now_ms") if now_ms is None else now_ms
            return looking.queue_counts(transaction, now_ms=at_ms, since_ms=since_ms)

    @checked
    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        """From the table of the dead alone."""
        with self._database.read() as transaction:
            return looking.latest_deaths(transaction, limit)

    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        """A paused queue counts only for what a claim would settle in it."""
        with self._database.snapshot() as transaction:
            return looking.next_due_ms(transaction, queues, effects)

    @checked
    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """From the end of the table."""
        with self._database.read() as transaction:
            return looking.audit(transaction, id, limit)

    # -- moving to another kind of ledger --

    @checked
    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        """A field of fencepost_meta, which every transaction that writes looks at first, and is waited for."""
        with self._database.write(even_sealed=True, alone=True) as transaction:
            transfer.seal(transaction, destination, actor, _at(transaction, now_ms))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        with self._database.read() as transaction:
            destination: str | None = transaction.value("sealed_for")
            return destination

    @checked
    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Jobs in order of enqueue, then the ids without a job in the order of their names."""
        with self._database.snapshot() as transaction:
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
            return operating.pause(
                transaction, queue, operating.Operator(actor, reason, _at(transaction, now_ms))
            )

    @checked
    def resume(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``pause``."""
        check_name(queue, "queue")
        with self._database.write() as transaction:
            return operating.resume(
                transaction, queue, operating.Operator(actor, reason, _at(transaction, now_ms))
            )

    def paused(self) -> list[str]:
        """By name."""
        with self._database.read() as transaction:
            return [queue for (queue,) in transaction.rows("paused")]

    @checked
    def register_schedule(self, schedule: Schedule, *, now_ms: int | None = None) -> None:
        """An upsert by name."""
        check_schedule(schedule)
        with self._database.write() as transaction:
            scheduling.register(transaction, schedule, _at(transaction, now_ms))

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
            return scheduling.tick(transaction, _at(transaction, now_ms))

    def soonest(self) -> int | None:
        """Of the schedules that can fire."""
        with self._database.read() as transaction:
            return scheduling.soonest(transaction)

    # -- shared by the verbs --

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            return move(transaction, id, rule, _at(transaction, now_ms)) is not None


def _at(transaction: Transaction, now_ms: int | None) -> int:
    return transaction.now_ms if now_ms is None else now_ms
