"""The SQLite ledger: the file it opens, how it waits, and its claims and settlements; see also ``sql/ledger.py``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from ...errors import InvalidInput
from ...model.clock import Clock, wall_ms
from ...model.job import ClaimRequest, Job
from ...model.receipts import Settled, Settlement
from ...model.records import Capabilities
from ..sql.engine import Engine
from ..sql.ledger import SqlLedger
from ..sql.transaction import instant
from . import dead, lanes, reads, receipts, transfer
from .claim import Claim
from .database import Database, Synchronous
from .enqueue import enqueue
from .transaction import Transaction
from .watch import Watch

ENGINE: Final = Engine(
    enqueue=enqueue,
    publish=receipts.publish,
    complete=receipts.complete,
    find=reads.find,
    bury=dead.bury,
    revive=dead.revive,
    purge=dead.purge,
    purgeable=reads.purgeable,
    expired=reads.expired,
    give_back=lanes.give_back,
    jobs=reads.jobs,
    counts=reads.counts,
    next_due_ms=reads.next_due_ms,
    import_rows=transfer.import_rows,
)


class SqliteLedger(SqlLedger[Transaction]):
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
        self._database: Database = Database(
            os.path.abspath(name), synchronous=synchronous, busy_timeout_ms=busy_timeout_ms, clock=clock
        )
        self._engine = ENGINE
        self._watch = Watch(self._database)
        self._clock = clock

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

    def _settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, now_ms: int | None
    ) -> tuple[list[Settled], list[Job]]:
        self._watch.mark()
        while True:
            with self._database.write() as transaction:
                now_ms = instant(transaction, now_ms)
                claim = Claim(transaction, request, now_ms)
                if claim.prepare():
                    continue  # this step is committed by itself, and others may come in between
                settled = receipts.settle(transaction, settlements, now_ms) if settlements else []
                if not all(item.completed for item in settled):
                    return settled, []
                return settled, claim.take()

    def _settle(self, settlements: Sequence[Settlement], now_ms: int | None) -> list[Settled]:
        with self._database.write() as transaction:
            return receipts.settle(transaction, settlements, instant(transaction, now_ms))
