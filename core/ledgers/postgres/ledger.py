"""The PostgreSQL ledger: the database it connects to, how it waits, and its claims and settlements.

The other verbs are in ``sql/ledger.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from ...model.job import ClaimRequest, Job
from ...model.receipts import Settled, Settlement
from ...model.records import Capabilities
from ..sql.engine import Engine
from ..sql.ledger import SqlLedger
from ..sql.transaction import instant
from . import dead, lanes, reads, receipts, transfer
from .address import parse_address
from .claim import Claim, survey
from .database import Database
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


class PostgresLedger(SqlLedger[Transaction]):
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
        self._database: Database = Database(address, max_connections=max_connections, timeout_s=timeout_s)
        self._engine = ENGINE
        self._watch = Watch(self._database)

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
        """Sleep until a commit since the last claim began is heard of, or the time-out."""
        return self._watch.wait(timeout_s)

    def _settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, now_ms: int | None
    ) -> tuple[list[Settled], list[Job]]:
        self._watch.mark()
        settled: list[Settled] = []
        while True:
            batch = receipts.Batch(() if settled else settlements, now_ms)
            with self._database.write_ahead(survey(request, now_ms), *batch.ahead) as (transaction, answers):
                self._watch.saw(transaction.meta.snapshot)
                at_ms = instant(transaction, now_ms)
                found, *rows = answers
                settled += batch.settled(transaction, rows, at_ms)
                if not all(item.completed for item in settled):
                    return settled, []
                claim = Claim(transaction, request, at_ms, found)
                if not claim.prepare():
                    return settled, claim.take()
                # This step is committed by itself, and others may come in between.

    def _settle(self, settlements: Sequence[Settlement], now_ms: int | None) -> list[Settled]:
        batch = receipts.Batch(settlements, now_ms)
        with self._database.write_ahead(*batch.ahead) as (transaction, rows):
            return batch.settled(transaction, rows, instant(transaction, now_ms))
