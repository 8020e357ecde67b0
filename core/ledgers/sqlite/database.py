"""One SQLite file: its connections, one for each thread, and the transactions on them."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from ...errors import (
    InvalidInput,
    LedgerBusy,
    LedgerFailed,
    LedgerReplaced,
)
from ...model.clock import Clock
from ..arguments import check_connection
from ..file_checks import check_one_name
from ..names import is_sqlite_name
from ..sql import transfer
from ..statements import load
from .errors import translate
from .migrations import migrate, migrate_within
from .storage import look_uri, on_read_only_storage
from .transaction import Transaction

Synchronous = Literal["FULL", "NORMAL", "OFF"]

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables."""

_SYNCHRONOUS: Final[dict[Synchronous, str]] = {
    "FULL": "PRAGMA synchronous = FULL",
    "NORMAL": "PRAGMA synchronous = NORMAL",
    "OFF": "PRAGMA synchronous = OFF",
}
_CACHED_STATEMENTS: Final = 256
_WAL_RETRY_S: Final = 0.005


@cache
def statements() -> Mapping[str, str]:
    """The statements of ``queries.sql``, read when first needed."""
    return load(Path(__file__).with_name("queries.sql"))


class Handle:
    """A connection, and the lock that is held while it works, so that nobody closes it under its thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = threading.Lock()
        self.open = True
        self.owner: weakref.ref[Owner] | None = None

    @property
    def abandoned(self) -> bool:
        """Whether the thread that it was opened for has ended."""
        return self.owner is not None and self.owner() is None

    def close(self) -> None:
        """Close the connection once it rests."""
        with self.lock:
            self.open = False
            self.connection.close()


class Owner:
    """What a thread keeps of its handle, and what goes when the thread does.

    The connection is not closed then and there, but by the next one that opens or closes any, under the lock: a
    fork in the middle of it would carry half a connection into the child.
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        handle.owner = weakref.ref(self)


class Database:
    """One SQLite file; nothing is opened or made before it is needed."""

    def __init__(self, path: str, *, synchronous: Synchronous, busy_timeout_ms: int, clock: Clock) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise LedgerFailed(
                f"SQLite {sqlite3.sqlite_version} is too old, {'.'.join(map(str, OLDEST_SQLITE))} is needed: "
                "use a Python that comes with a newer one"
            )
        if synchronous not in _SYNCHRONOUS:
            raise InvalidInput(f"synchronous is {synchronous!r}, it must be one of {', '.join(_SYNCHRONOUS)}")
        self.path: Final = path
        self._clock: Final = clock
        self._synchronous: Final = synchronous
        self._busy_timeout_ms: Final = busy_timeout_ms
        # Taken in this order, then the lock of one handle.
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._handles: set[Handle] = set()
        self._thread = threading.local()
        self._identity: tuple[int, int] | None = None
        self._pid = os.getpid()
        self.closed = False
        _LIVE.add(self)

    @property
    def location(self) -> str:
        """The path as it names a SQLite file: where its ending does not say so, the prefix does."""
        return self.path if is_sqlite_name(self.path) else f"sqlite:{self.path}"

    # -- transactions --

    def read(self) -> AbstractContextManager[Transaction]:
        """A transaction that reads: all of it sees one moment, and nobody waits for it."""
        return self._transaction("BEGIN")

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """As ``read``, in which all sees one moment anyway."""
        return self.read()

    @contextmanager
    def write(self, *, even_sealed: bool = False, even_copying: bool = False) -> Iterator[Transaction]:
        """A transaction that has the write lock from the start; committed at the end, rolled back on any error.

        Raises:
            LedgerBusy: the lock was not had in time.
            LedgerSealed: the ledger has moved, or waits for the rest of a copy.
        """
        # Threads of one process queue here: SQLite's own waiting sleeps in steps of up to 100 ms.
        if not self._writing.acquire(timeout=self._busy_timeout_ms / 1_000):
            raise LedgerBusy(f"{self.path}: another thread held the write lock for too long; try again")
        try:
            with self._transaction("BEGIN IMMEDIATE") as transaction:
                transfer.closing(transaction).refuse(
                    self.location, even_sealed=even_sealed, even_copying=even_copying
                )
                yield transaction
        finally:
            self._writing.release()

    @contextmanager
    def join(self, connection: Any) -> Iterator[Transaction]:
        """A part of the caller's own transaction on the same file: commit and rollback stay theirs.

        Raises:
            InvalidInput: not a connection to this file, or not in a transaction.
        """
        connection = check_connection(connection, sqlite3.Connection)
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
            transaction = Transaction(connection, statements(), self.path, self._clock)
            with transaction.savepoint():
                migrate_within(connection, self.path)
                transfer.closing(transaction).refuse(self.location)
                yield transaction
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise translate(error, self.path) from error
        finally:
            connection.text_factory = text_factory

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        handle = self._hold()
        connection = handle.connection
        try:
            self.check_file()
            connection.execute(begin)
            try:
                yield Transaction(connection, statements(), self.path, self._clock)
                connection.execute("COMMIT")
            except BaseException:
                # A trigger or a full disk may have ended the transaction already.
                if connection.in_transaction:
                    with suppress(sqlite3.Error):  # the first error is the one to tell
                        connection.execute("ROLLBACK")
                raise
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise translate(error, self.path) from error
        finally:
            handle.lock.release()

    # -- connections --

    def open_handle(self) -> Handle:
        """A connection of its own, apart from the threads'."""
        with self._opening:
            if self.closed:
                raise LedgerFailed(f"{self.path}: this ledger was closed; open it anew")
            if self._pid != os.getpid():
                # A fork that Python was not told of: see _before_fork for what would go wrong.
                raise LedgerFailed(
                    f"{self.path}: this process was forked from one that had the ledger open, by other means than "
                    "os.fork; open ledgers after such a fork only"
                )
            self._close_handles([handle for handle in self._handles if handle.abandoned])
            try:
                handle = Handle(self._connect())
            except (sqlite3.Error, OSError) as error:
                raise translate(error, self.path) from error
            self._handles.add(handle)
        return handle

    def close(self) -> None:
        """Close every connection, each when it rests; the ledger cannot be used again."""
        with self._opening:
            self.closed = True
            self._close_handles(list(self._handles))

    def _hold(self) -> Handle:
        """The connection of this thread, with its lock taken."""
        while True:
            owner: Owner | None = getattr(self._thread, "owner", None)
            if owner is None or not owner.handle.open or self._pid != os.getpid():
                owner = self._thread.owner = Owner(self.open_handle())
            handle = owner.handle
            handle.lock.acquire()
            if handle.open:
                return handle
            handle.lock.release()  # closed in between: by close(), or for a fork

    def _close_handles(self, handles: list[Handle]) -> None:
        for handle in handles:
            handle.close()
            self._handles.discard(handle)

    def _connect(self) -> sqlite3.Connection:
        self.check_file()
        only_to_look = on_read_only_storage(self.path)
        if not only_to_look:
            _make(self.path)
        check_one_name(self.path)
        connection = sqlite3.connect(
            look_uri(self.path) if only_to_look else f"{Path(self.path).as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_timeout_ms / 1_000,
            isolation_level=None,
            # Only what closes a connection reaches into another thread's, under its lock.
            check_same_thread=False,
            cached_statements=_CACHED_STATEMENTS,
        )
        try:
            if not only_to_look:
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

    # -- the file --

    def check_file(self) -> None:
        """Check that the path still leads to the file that was opened.

        Raises:
            LedgerFailed: none does; it may come back.
            LedgerReplaced: another one does.
        """
        if self._identity is None or (found := _identity(self.path)) == self._identity:
            return
        if found is None:
            raise LedgerFailed(
                f"{self.path}: the file was removed or moved away while it was in use; whatever goes into it is lost. "
                "Put it back, or open the ledger anew"
            )
        raise LedgerReplaced(
            f"{self.path}: the file was replaced by another one while it was in use; whatever goes into the old one "
            "is lost. Open the ledger anew, and replace it only while no program has it open"
        )

    def _check_same_file(self, connection: sqlite3.Connection) -> None:
        files = {name: file for _, name, file in connection.execute("PRAGMA database_list").fetchall()}
        main = files.get("main") or None
        if main is None or _identity(main) != _identity(self.path):
            raise InvalidInput(
                f"the connection is to {main or 'no file'}, not to {self.path}: a transaction spans one file"
            )

    # -- forks --

    def before_fork(self) -> None:
        """Let every transaction end, and close every connection; the locks stay taken until ``after_fork``."""
        self._writing.acquire()
        self._opening.acquire()
        self._close_handles(list(self._handles))

    def after_fork(self) -> None:
        """Go on, in the parent and in the child: each opens connections of its own when it needs them."""
        self._pid = os.getpid()
        self._opening.release()
        self._writing.release()


_LIVE: Final[weakref.WeakSet[Database]] = weakref.WeakSet()
_FORKING: Final[list[Database]] = []
_ONE_FORK_AT_A_TIME: Final = threading.Lock()


def _before_fork() -> None:
    """No connection may be open across a fork, not even one that the child never touches.

    SQLite notes in memory which locks the process holds on a file. A child inherits the note but not the locks:
    its own new connection then takes none, and when the parent closes its last one, it deletes the log that the
    child goes on writing to. Every commit of the child is lost without an error.
    """
    _ONE_FORK_AT_A_TIME.acquire()
    _FORKING.extend(_LIVE)
    for database in _FORKING:
        database.before_fork()


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop().after_fork()
    _ONE_FORK_AT_A_TIME.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _make(path: str) -> None:
    """Make an empty file that only its owner can read, where there is none."""
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
