"""Connections to one SQLite file: one per thread and process, and the transactions on them."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final, Literal

from ...errors import InvalidInput, LedgerBusy, LedgerFailed, LedgerSealed
from ..statements import load
from .errors import translate
from .migrations import migrate
from .transaction import Transaction

Synchronous = Literal["FULL", "NORMAL", "OFF"]

OLDEST_SQLITE: Final = (3, 38, 0)
"""The first with STRICT tables and the operator ``->>``."""

_SYNCHRONOUS: Final[dict[Synchronous, str]] = {
    "FULL": "PRAGMA synchronous = FULL",
    "NORMAL": "PRAGMA synchronous = NORMAL",
    "OFF": "PRAGMA synchronous = OFF",
}
_CACHED_STATEMENTS: Final = 256
_WAL_RETRY_S: Final = 0.005

_INHERITED: Final[list[sqlite3.Connection]] = []
"""Connections that came over a fork. A child must never close them: that would be done in the parent's file."""


@cache
def statements() -> Mapping[str, str]:
    """The statements of ``queries.sql``, read when first needed."""
    return load(Path(__file__).with_name("queries.sql"))


class Handle:
    """A connection, and the lock that is held while it works, so that ``close`` never pulls it away."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = threading.Lock()
        self._pid = os.getpid()

    def close(self) -> None:
        """Close the connection once it rests."""
        with self.lock:
            self.connection.close()

    def __del__(self) -> None:
        # Reached when the thread has ended: its connection ends with it.
        if self._pid == os.getpid():
            self.connection.close()
        else:
            _INHERITED.append(self.connection)


class _Process:
    """What one process holds open; a forked child starts with a new one."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.writing = threading.Lock()
        self.opening = threading.Lock()
        self.handles: weakref.WeakSet[Handle] = weakref.WeakSet()
        self.thread = threading.local()


class Database:
    """One SQLite file; nothing is opened or made before it is needed."""

    def __init__(self, path: str, *, synchronous: Synchronous, busy_timeout_ms: int) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise LedgerFailed(
                f"SQLite {sqlite3.sqlite_version} is too old, {'.'.join(map(str, OLDEST_SQLITE))} is needed: "
                "use a Python that comes with a newer one"
            )
        if synchronous not in _SYNCHRONOUS:
            raise InvalidInput(f"synchronous is {synchronous!r}, it must be one of {', '.join(_SYNCHRONOUS)}")
        self.path: Final = path
        self._synchronous: Final = synchronous
        self._busy_timeout_ms: Final = busy_timeout_ms
        self._process = _Process()
        self._identity: tuple[int, int] | None = None
        self._closed = False

    # -- transactions --

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that reads: all of it sees one moment, and nobody waits for it."""
        handle = self._handle()
        with handle.lock:
            try:
                with _transaction(handle.connection, "BEGIN"):
                    yield Transaction(handle.connection, statements(), self.path)
            except (sqlite3.Error, UnicodeError, OverflowError) as error:
                raise translate(error, self.path) from error

    @contextmanager
    def write(self, *, even_sealed: bool = False) -> Iterator[Transaction]:
        """A transaction that has the write lock from the start; committed at the end, rolled back on any error.

        Raises:
            LedgerBusy: the lock was not had in time.
            LedgerSealed: the ledger has moved.
        """
        process = self._this_process()
        # Threads of one process queue here: SQLite's own waiting sleeps in steps of up to 100 ms.
        if not process.writing.acquire(timeout=self._busy_timeout_ms / 1_000):
            raise LedgerBusy(f"{self.path}: another thread held the write lock for too long; try again")
        try:
            handle = self._handle()
            with handle.lock:
                try:
                    self.check_file()
                    with _transaction(handle.connection, "BEGIN IMMEDIATE"):
                        transaction = Transaction(handle.connection, statements(), self.path)
                        if not even_sealed:
                            refuse_sealed(transaction)
                        yield transaction
                except (sqlite3.Error, UnicodeError, OverflowError) as error:
                    raise translate(error, self.path) from error
        finally:
            process.writing.release()

    @contextmanager
    def join(self, connection: object) -> Iterator[Transaction]:
        """A part of the caller's own transaction on the same file: commit and rollback stay theirs.

        Raises:
            InvalidInput: not a connection to this file, or not in a transaction.
        """
        if not isinstance(connection, sqlite3.Connection):
            raise InvalidInput(f"connection must be a sqlite3.Connection, not {type(connection).__name__}")
        self._handle()  # makes the ledger where it is absent
        text_factory = connection.text_factory
        connection.text_factory = str
        try:
            self._check_same_file(connection)
            if not connection.in_transaction:
                if connection.isolation_level is None:
                    raise InvalidInput(
                        "the connection is in no transaction that could be joined: BEGIN IMMEDIATE one first"
                    )
                connection.execute("BEGIN IMMEDIATE")  # as sqlite3 would before their own first change
            transaction = Transaction(connection, statements(), self.path)
            with transaction.savepoint():
                refuse_sealed(transaction)
                yield transaction
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise translate(error, self.path) from error
        finally:
            connection.text_factory = text_factory

    # -- the file --

    def check_file(self) -> None:
        """Raise LedgerFailed if another file, or none, stands where this one was opened."""
        if self._identity is not None and _identity(self.path) != self._identity:
            raise LedgerFailed(
                f"{self.path}: the file was removed or replaced since it was opened; whatever goes into the old one "
                "is lost. Open the ledger anew, and replace it only while no program has it open"
            )

    def open_handle(self) -> Handle:
        """A connection of its own, apart from the threads'."""
        process = self._this_process()
        with process.opening:
            if self._closed:
                raise LedgerFailed(f"{self.path}: this ledger was closed; open it anew")
            try:
                handle = Handle(self._connect())
            except (sqlite3.Error, OSError) as error:
                raise translate(error, self.path) from error
            process.handles.add(handle)
        return handle

    def close(self) -> None:
        """Close every connection of this process, each when it rests."""
        process = self._this_process()
        with process.opening:
            self._closed = True
            handles = list(process.handles)
        for handle in handles:
            handle.close()

    def _this_process(self) -> _Process:
        if self._process.pid != os.getpid():
            self._process = _Process()
        return self._process

    def _handle(self) -> Handle:
        process = self._this_process()
        handle: Handle | None = getattr(process.thread, "handle", None)
        if handle is None:
            handle = process.thread.handle = self.open_handle()
        elif self._closed:
            raise LedgerFailed(f"{self.path}: this ledger was closed; open it anew")
        return handle

    def _connect(self) -> sqlite3.Connection:
        _make(self.path)
        connection = sqlite3.connect(
            f"{Path(self.path).as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_timeout_ms / 1_000,
            isolation_level=None,
            # Only close() and the end of a thread reach into another thread's connection, under its lock.
            check_same_thread=False,
            cached_statements=_CACHED_STATEMENTS,
        )
        try:
            self._use_wal(connection)
            connection.execute(_SYNCHRONOUS[self._synchronous])
            # A claim's subquery goes through a temporary table, which on disk makes it three times slower.
            connection.execute("PRAGMA temp_store = MEMORY")
            # A log that one large transaction has blown up is cut back to 64 MiB when it is next reset.
            connection.execute("PRAGMA journal_size_limit = 67108864")
            migrate(connection, self.path)
            if self._identity is None:
                self._identity = _identity(self.path)
            self.check_file()
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log; once done it is a property of the file."""
        deadline = time.monotonic() + self._busy_timeout_ms / 1_000
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            # The switch does not wait for others that do the same at the same time.
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_WAL_RETRY_S)

    def _check_same_file(self, connection: sqlite3.Connection) -> None:
        files = {name: file for _, name, file in connection.execute("PRAGMA database_list").fetchall()}
        main = files.get("main") or None
        if main is None or _identity(main) != _identity(self.path):
            raise InvalidInput(
                f"the connection is to {main or 'no file'}, not to {self.path}: a transaction spans one file"
            )


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A trigger or a full disk may have ended the transaction already.
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to tell
                connection.execute("ROLLBACK")
        raise


def refuse_sealed(transaction: Transaction) -> None:
    """Raise LedgerSealed if the ledger was copied to another one."""
    destination = transaction.value("sealed_for")
    if destination is not None:
        raise LedgerSealed(
            f"{transaction.path}: this ledger was sealed for {destination}; use that one from now on"
        )


def _make(path: str) -> None:
    """Make an empty file that only its owner can read, where there is none."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        # Only a file that this call has made is closed here: closing any other descriptor of a database
        # drops the locks that SQLite holds on it in this process.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
