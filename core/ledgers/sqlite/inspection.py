"""The doctor's look at a SQLite ledger: through a connection that cannot write."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ...errors import FencepostError, LedgerFailed
from ...model.clock import Clock, wall_ms
from ...model.documents import parse
from ...model.inputs import Input
from ...model.receipts import Receipt
from ...model.records import Schedule
from ..closing import Closing
from ..file_checks import mode_findings, name_findings, network_findings
from ..inspection import Content, Entry, Finding
from ..rows import JOB_COLUMNS, job_of
from ..sql.findings import schema_finding
from ..sql.schedules import schedule_of
from ..statements import load
from .errors import translate
from .migrations import damaged_objects, migrations, schema_version
from .storage import look_uri, on_read_only_storage

LONG_WAL_BYTES: Final = 256 * 1024 * 1024
CHUNK: Final = 1_000
CACHE: Final = "PRAGMA cache_size = -65536"
"""64 MiB: every id is looked up in every table, and with SQLite's usual 2 MiB most pages are read again and again."""
MAX_FAULTS: Final = 20


class SqliteInspection:
    """One look, in which all jobs are seen as of one instant."""

    def __init__(self, path: str, *, clock: Clock = wall_ms) -> None:
        self.location: Final = os.path.abspath(path)
        self._clock = clock
        self._statements = load(Path(__file__).with_name("inspection.sql"))
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()

    def now_ms(self) -> int:
        """The clock that it was opened with."""
        return self._clock()

    def findings(self) -> Iterator[Finding]:
        """The file and those beside it; then the engine's own check; then the schema."""
        if not os.path.isfile(self.location):
            raise LedgerFailed(f"{self.location}: there is no file of that name; look at what --store says")
        yield from network_findings(self.location)
        yield from name_findings((self.location,))
        yield from mode_findings(
            (self.location, self._wal, f"{self.location}-shm"), what="files", remedy="chmod 600 them"
        )
        with self._reading() as connection:
            faults = [row[0] for row in connection.execute(f"PRAGMA integrity_check({MAX_FAULTS})")]
            if faults != ["ok"]:
                yield Finding(
                    "integrity",
                    f"the database is damaged: {faults[0]}",
                    "restore it from a back-up; what can still be read: sqlite3 FILE .recover",
                    count=len(faults),
                )
            self._check_schema(connection)
            if damaged := damaged_objects(connection):
                yield schema_finding(damaged, what="missing or changed")
            yield from self._wal_findings(connection)

    def entries(self) -> Iterator[Entry]:
        """Every job with what belongs to it, then the ids without a job."""
        with self._reading() as connection, closing(connection.cursor()) as cursor:
            connection.execute("BEGIN")
            try:
                for row in _chunks(cursor.execute(self._statements["entries"])):
                    job = job_of(row)
                    yield Entry(job.id, job, False, bool(row[JOB_COLUMNS]), bool(row[JOB_COLUMNS + 1]))
                for id, purged, has_input, has_receipt in _chunks(cursor.execute(self._statements["others"])):
                    yield Entry(id, None, bool(purged), bool(has_input), bool(has_receipt))
            finally:
                connection.execute("ROLLBACK")

    def contents(self, ids: Sequence[str]) -> Iterable[Content]:
        """Their inputs and receipts, by one statement."""
        with self._reading() as connection:
            found = connection.execute(
                self._statements["contents"], {"ids": json.dumps(list(ids))}
            ).fetchall()
        for id, text, receipt in found:
            try:
                yield Content(id, None if text is None else Input(id, text), _receipt(id, receipt))
            except FencepostError as error:
                yield Content(id, None, None, fault=str(error))

    def paused(self) -> list[str]:
        """The queues that are paused."""
        with self._reading() as connection:
            return [queue for (queue,) in connection.execute(self._statements["paused"])]

    def schedules(self) -> list[Schedule]:
        """One row each."""
        with self._reading() as connection:
            return [schedule_of(row) for row in connection.execute(self._statements["schedules"])]

    def closing(self) -> Closing:
        """A row of fencepost_meta."""
        with self._reading() as connection:
            row = connection.execute(self._statements["closing"]).fetchone()
        return Closing() if row is None else Closing(*row)

    # -- the engine --

    @property
    def _wal(self) -> str:
        return f"{self.location}-wal"

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        found, known = schema_version(connection), len(migrations())
        if found == 0:
            raise LedgerFailed(
                f"{self.location}: a database, but no ledger: the tables of Fencepost are not in it; look at what "
                "--store says (an enqueue there would make them)"
            )
        if found > known:
            raise LedgerFailed(
                f"{self.location}: its schema has version {found}, this program knows {known} and older: look at it "
                "with the newer program that made it"
            )
        if found < known:
            raise LedgerFailed(
                f"{self.location}: its schema has version {found}, and {known} is current: any other command "
                "upgrades it when it opens it; make a back-up first"
            )

    def _wal_findings(self, connection: sqlite3.Connection) -> Iterator[Finding]:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "wal" and not on_read_only_storage(self.location):  # where SQLite does without the log
            yield Finding(
                "journal-mode",
                f"the journal mode is {mode}, not wal: readers and workers wait for one another",
                "let the next command set it; find out what program changed it",
            )
        try:
            size = os.stat(self._wal).st_size
        except FileNotFoundError:
            return
        if size > LONG_WAL_BYTES:
            yield Finding(
                "long-wal",
                f"the write-ahead log has {size / 1_048_576:,.0f} MiB: something has been reading one old snapshot",
                "find the program that keeps a read transaction open on this file, and end it",
            )

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection
        except sqlite3.Error as error:
            raise translate(error, self.location) from error

    def _connect(self) -> sqlite3.Connection:
        # A connection that may write would, when it closes, move what a crash left in the log into the file;
        # one that may not leaves empty files beside a database that was closed well. Each where it does no harm.
        mode = "ro" if os.path.exists(self._wal) or not os.access(self.location, os.W_OK) else "rw"
        uri = f"{Path(self.location).as_uri()}?mode={mode}"
        if on_read_only_storage(self.location):
            uri = look_uri(self.location)
        connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(CACHE)
        return connection


def _chunks(cursor: sqlite3.Cursor) -> Iterator[Any]:
    while rows := cursor.fetchmany(CHUNK):
        yield from rows


def _receipt(id: str, text: str | None) -> Receipt | None:
    if text is None:
        return None
    return Receipt.from_document(parse(text.encode("utf-8"), what=f"receipt of {id!r}"))
