"""The PostgreSQL ledger's verbs: each is one transaction around functions that know nothing of transactions.

What the rules of ``job.py`` alone decide is in ``verbs.py``, what both SQL ledgers do alike in ``sql/ledger.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from ...model.inputs import Input, NewJob, check_request
from ...model.job import ClaimRequest, Job, State
from ...model.query import ALL_JOBS, JobQuery
from ...model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
)
from ...model.records import (
    Capabilities,
    Enqueued,
    Export,
    Fire,
    Page,
    Row,
    Swept,
)
from ..arguments import checked
from ..moves import Rule
from ..operator import ManualRule, Operator
from ..sql import schedules as scheduling
from ..sql.audit import record
from ..sql.ledger import SqlLedger
from ..sql.records import Records
from ..sql.sweep import Sweep
from ..sql.transfer import require_copy
from . import (
    reads as looking,
)
from . import (
    receipts as receipting,
)
from . import (
    sweep as sweeping,
)
from . import (
    transfer,
)
from .address import parse_address
from .arrays import text_array
from .claim import Claim, lanes
from .database import Database
from .enqueue import enqueue
from .moves import forget, move
from .transaction import Transaction
from .watch import Watch


class PostgresLedger(SqlLedger):
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

    @checked
    def read_inputs(self, ids: Iterable[str]) -> dict[str, Input]:
        """By one statement; a job without its input is corrupt."""
        with self._database.read() as transaction:
            return looking.read_inputs(transaction, ids)

    @checked
    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        """By one statement."""
        with self._database.read() as transaction:
            return receipting.receipts(transaction, ids)

    # -- the holder's moves --

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

    # -- the operator's moves --

    @checked
    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Keep nothing of the dead job but its version, its input and its receipt."""
        with self._database.write() as transaction:
            dead = forget(transaction, id)
            if dead is None:
                return False
            at_ms = _at(transaction, now_ms)
            record(transaction, Operator(actor, reason).entry("purge", id, at_ms, dead))
            return True

    @checked
    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """See ``sql/sweeping.py``."""
        sweep = Sweep()
        while not sweep.done:
            with self._database.write() as transaction:
                now_ms = _at(transaction, now_ms)
                sweep.step(
                    partial(sweeping.purge_kept, transaction, queue, now_ms),
                    partial(sweeping.bury_expired, transaction, queue, now_ms),
                )
        return sweep.swept

    # -- looking --

    def get_job(self, id: str) -> Job | None:
        """By one statement over both tables."""
        with self._database.read() as transaction:
            return looking.get_job(transaction, id)

    def jobs(self, query: JobQuery = ALL_JOBS) -> Page:
        """The cursor is the place in the order of enqueue."""
        with self._database.snapshot() as transaction:
            return looking.jobs(transaction, query)

    @checked
    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """By one statement over both tables."""
        with self._database.read() as transaction:
            return looking.counts(transaction, queue)

    @checked
    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        """A paused queue counts only for what a claim would settle in it."""
        with self._database.snapshot() as transaction:
            return looking.next_due_ms(transaction, queues, effects)

    # -- moving to another kind of ledger --

    @checked
    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Jobs in order of enqueue, then the ids without a job in the order of their names."""
        with self._database.snapshot() as transaction:
            return transfer.export_rows(transaction, after, limit)

    def import_rows(self, rows: Sequence[Row], *, copy_of: str | None = None) -> int:
        """In one transaction, while no other one writes."""
        with self._acting(None, even_copying=True) as (transaction, _):
            require_copy(transaction, self.location, copy_of)
            return transfer.import_rows(transaction, rows)

    # -- schedules --

    @checked
    def tick(self, *, now_ms: int | None = None) -> list[Fire]:
        """Fires and advances in one transaction; where nothing is due it writes nothing."""
        with self._database.write() as transaction:
            at_ms = _at(transaction, now_ms)
            return scheduling.tick(transaction, at_ms, lambda job: _enqueue_if_free(transaction, job, at_ms))

    # -- shared by the verbs --

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            return move(transaction, id, rule, _at(transaction, now_ms)) is not None

    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            records = Records(
                read_inputs=partial(looking.read_inputs, transaction),
                read_receipts=partial(receipting.receipts, transaction),
                publish_receipt=partial(receipting.publish, transaction),
            )
            at_ms = _at(transaction, now_ms)
            moved = move(transaction, id, lambda job, now_ms: rule(job, now_ms, records), at_ms)
            if moved is None:
                return False
            record(transaction, operator.entry(action, id, at_ms, *moved))
            return True

    def _reading(self) -> AbstractContextManager[Transaction]:
        return self._database.read()

    @contextmanager
    def _acting(
        self, now_ms: int | None, *, even_sealed: bool = False, even_copying: bool = False
    ) -> Iterator[tuple[Transaction, int]]:
        alone = even_sealed or even_copying
        with self._database.write(
            even_sealed=even_sealed, even_copying=even_copying, alone=alone
        ) as transaction:
            transaction.wakes = True
            yield transaction, _at(transaction, now_ms)

    def _kept_text(self, text: str) -> bytes:
        # PostgreSQL's own type of texts carries no NUL.
        return text.encode()


def _at(transaction: Transaction, now_ms: int | None) -> int:
    return transaction.now_ms if now_ms is None else now_ms


def _enqueue_if_free(transaction: Transaction, job: NewJob, now_ms: int) -> bool:
    if transaction.rows("inputs", {"ids": text_array([job.id])}):
        return False
    enqueue(transaction, [job], now_ms)
    return True
