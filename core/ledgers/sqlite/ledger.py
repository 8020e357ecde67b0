"""The SQLite ledger's verbs: each is one transaction around functions that know nothing of transactions.

What the rules of ``job.py`` alone decide is in ``verbs.py``, what both SQL ledgers do alike in ``sql/ledger.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from ...errors import InvalidInput
from ...model.clock import Clock, wall_ms
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
from .claim import Claim
from .database import Database, Synchronous
from .enqueue import enqueue
from .moves import forget, move
from .transaction import Transaction
from .watch import Watch


class SqliteLedger(SqlLedger):
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
        """The absolute path of the file, as ``--store`` takes it."""
        return self._database.location

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
            return receipting.complete(transaction, id, version, self._at(now_ms))

    @checked
    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """In one commit, each item for itself."""
        if not settlements:
            return []
        with self._database.write() as transaction:
            return receipting.settle(transaction, settlements, self._at(now_ms))

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
            record(transaction, Operator(actor, reason).entry("purge", id, self._at(now_ms), dead))
            return True

    @checked
    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """See ``sql/sweeping.py``."""
        sweep = Sweep()
        while not sweep.done:
            with self._database.write() as transaction:
                now_ms = self._at(now_ms)
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
        with self._database.read() as transaction:
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
        with self._database.read() as transaction:
            return looking.next_due_ms(transaction, queues, effects)

    # -- moving to another kind of ledger --

    @checked
    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Jobs in order of enqueue, then the ids without a job in the order of their names."""
        with self._database.read() as transaction:
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
            at_ms = self._at(now_ms)
            return scheduling.tick(transaction, at_ms, lambda job: _enqueue_if_free(transaction, job, at_ms))

    # -- shared by the verbs --

    def _at(self, now_ms: int | None) -> int:
        return self._clock() if now_ms is None else now_ms

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            return move(transaction, id, rule, self._at(now_ms)) is not None

    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        with self._database.write() as transaction:
            records = Records(
                read_inputs=partial(looking.read_inputs, transaction),
                read_receipts=partial(receipting.receipts, transaction),
                publish_receipt=partial(receipting.publish, transaction),
            )
            at_ms = self._at(now_ms)
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
        # Whoever waits watches the file, and one transaction at a time writes to it.
        with self._database.write(even_sealed=even_sealed, even_copying=even_copying) as transaction:
            yield transaction, self._at(now_ms)

    def _kept_text(self, text: str) -> str:
        return text


def _enqueue_if_free(transaction: Transaction, job: NewJob, now_ms: int) -> bool:
    if transaction.value("input", (job.id,)) is not None:
        return False
    enqueue(transaction, [job], now_ms)
    return True
