"""The doctor's look at a PostgreSQL ledger: in transactions that cannot write, and at the server under it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg
from psycopg.rows import tuple_row

from ...errors import FencepostError, LedgerFailed
from ...model.documents import parse
from ...model.durations import words
from ...model.inputs import Input
from ...model.receipts import Receipt
from ...model.records import Schedule
from ..closing import Closing
from ..inspection import Content, Entry, Finding
from ..rows import JOB_COLUMNS, job_of
from ..sql.findings import schema_finding
from ..sql.schedules import schedule_of
from ..statements import load
from .address import parse_address
from .errors import translate
from .migrations import migrations, object_names, schema_version
from .transaction import Connection, Row

OLD_MS: Final = 5 * 60_000
"""A transaction that is older keeps vacuum from its work for no good reason."""
LEAST_DEAD_ROWS: Final = 10_000
CHUNK: Final = 1_000


def is_there(url: str) -> bool:
    """Whether the database has the tables of a ledger; nothing is made.

    Raises:
        LedgerError: the server cannot be asked.
    """
    with PostgresInspection(url) as inspection:
        return inspection.version() > 0


class PostgresInspection:
    """One look, in which all jobs are seen as of one instant."""

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._connection: Connection | None = None
        named = load(Path(__file__).with_name("inspection.sql"))
        self._statements: Mapping[str, bytes] = {
            name: text.replace("{schema}", f'"{self._address.schema}"').encode()
            for name, text in named.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def location(self) -> str:
        """The URL without its password."""
        return self._address.location

    def now_ms(self) -> int:
        """The database's clock."""
        return int(self._rows("now_ms")[0][0])

    def version(self) -> int:
        """The version of the schema; 0 where there is no ledger."""
        with self._reading() as connection:
            return schema_version(connection, self._address.schema)

    def findings(self) -> Iterator[Finding]:
        """The schema; then what of the server's settings and state is bad for a queue."""
        self._check_schema()
        present = {name for (name,) in self._rows("objects", schema=self._address.schema)}
        if missing := sorted(object_names() - present):
            yield schema_finding(missing, what="missing or switched off")
        if self._rows("standby")[0][0]:
            yield Finding(
                "standby",
                "the server is a standby, which takes no writes",
                "use the primary server's address",
            )
        if names := self._names("not_durable"):
            yield Finding(
                "not-durable",
                "settings by which a crash of the server loses jobs and receipts that were committed",
                "set them on, or do not keep jobs here that matter",
                *names,
            )
        if names := self._names("broken_indexes", schema=self._address.schema):
            yield Finding(
                "broken-indexes", "indexes that are not valid", "REINDEX INDEX CONCURRENTLY them", *names
            )
        yield from self._vacuum_findings()

    def entries(self) -> Iterator[Entry]:
        """Every job with what belongs to it, then the ids without a job."""
        with self._snapshot() as connection:
            for row in _walk(connection, self._statements["entries"]):
                job = job_of(row)
                yield Entry(job.id, job, False, row[JOB_COLUMNS], row[JOB_COLUMNS + 1])
            for id, purged, has_input, has_receipt in _walk(connection, self._statements["others"]):
                yield Entry(id, None, purged, has_input, has_receipt)

    def contents(self, ids: Sequence[str]) -> Iterable[Content]:
        """Their inputs and receipts, by one statement."""
        # Entries may be in the middle of their transaction on the one connection; this reads along in it.
        for id, text, receipt in self._rows("contents", ids=list(ids)):
            try:
                found = None if text is None else Input(id, bytes(text).decode())
                yield Content(id, found, None if receipt is None else _receipt(id, bytes(receipt)))
            except (FencepostError, UnicodeDecodeError) as error:
                yield Content(id, None, None, fault=str(error))

    def paused(self) -> list[str]:
        """The queues that are paused."""
        return [queue for (queue,) in self._rows("paused")]

    def schedules(self) -> list[Schedule]:
        """One row each."""
        return [schedule_of(row) for row in self._rows("schedules")]

    def closing(self) -> Closing:
        """A row of fencepost_meta."""
        rows = self._rows("closing")
        return Closing(*rows[0]) if rows else Closing()

    # -- the server --

    def _check_schema(self) -> None:
        found, known = self.version(), len(migrations())
        where = f"{self.location}: the schema {self._address.schema!r}"
        if found == 0:
            raise LedgerFailed(
                f"{where} holds no ledger: the tables of Fencepost are not in it; look at what --store says "
                "(an enqueue there would make them)"
            )
        if found > known:
            raise LedgerFailed(
                f"{where} has version {found}, this program knows {known} and older: look at it with the newer "
                "program that made it"
            )
        if found < known:
            raise LedgerFailed(f"{where} has version {found}, and {known} is current: run fencepost migrate")

    def _vacuum_findings(self) -> Iterator[Finding]:
        if names := self._names("without_vacuum", schema=self._address.schema):
            yield Finding(
                "autovacuum-off",
                "tables that autovacuum leaves alone: claims get slower and slower",
                "turn autovacuum on, for the server and for these tables",
                *names,
            )
        bloated = self._rows("bloat", schema=self._address.schema, least=LEAST_DEAD_ROWS)
        if bloated:
            table, live, dead = bloated[0]
            yield Finding(
                "bloat",
                f"tables with more dead rows than live ones ({table}: {dead:,} dead, {live:,} live)",
                "end what keeps old snapshots, then VACUUM them; make autovacuum more eager if it comes back",
                tuple(row[0] for row in bloated),
                len(bloated),
            )
        old = self._rows("old_snapshots", old_ms=OLD_MS)
        if old:
            yield Finding(
                "old-snapshots",
                f"transactions open for more than {words(OLD_MS)} (the oldest for {words(old[0][1])}): no dead row "
                "that is younger can be removed, and claims get slower meanwhile",
                "end them: SELECT pg_terminate_backend(pid), or ROLLBACK PREPARED; set "
                "idle_in_transaction_session_timeout",
                tuple(row[0] for row in old[:5]),
                len(old),
            )
        if names := self._names("hidden_sessions"):
            yield Finding(
                "hidden-sessions",
                "sessions of other roles that this one may not look into: old transactions among them are not named",
                "GRANT pg_read_all_stats to the role that runs the doctor",
                *names,
            )
        if names := self._names("idle_slots"):
            yield Finding(
                "idle-slots",
                "replication slots that nobody reads and that keep old rows",
                "SELECT pg_drop_replication_slot(name), or let their reader go on",
                *names,
            )

    # -- the connection --

    def _names(self, statement: str, **parameters: Any) -> tuple[tuple[str, ...], int] | None:
        """The first column of what is found, and how many rows there are; None if there is none."""
        rows = self._rows(statement, **parameters)
        return (tuple(row[0] for row in rows[:5]), len(rows)) if rows else None

    def _rows(self, statement: str, **parameters: Any) -> list[Row]:
        with self._reading() as connection:
            return connection.execute(self._statements[statement], parameters or None).fetchall()

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield connection
            finally:
                with suppress(psycopg.Error):  # an error that ended the transaction is the one to tell
                    connection.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._address.conninfo, autocommit=True, prepare_threshold=None, row_factory=tuple_row
                )
            yield self._connection
        except psycopg.Error as error:
            raise translate(error, self._address) from error


def _walk(connection: Connection, statement: bytes) -> Iterator[Row]:
    """The rows a thousand at a time: the server holds the rest, so that memory stays flat."""
    connection.execute(b"DECLARE fencepost_walk NO SCROLL CURSOR FOR " + statement)
    while rows := connection.execute(f"FETCH {CHUNK} FROM fencepost_walk").fetchall():
        yield from rows
    connection.execute("CLOSE fencepost_walk")


def _receipt(id: str, data: bytes) -> Receipt:
    return Receipt.from_document(parse(data, what=f"receipt of {id!r}"))
