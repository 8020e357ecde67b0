"""What runs inside a transaction: named statements, savepoints, and the wake-up at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import psycopg

from ..closing import Closing
from .address import Address
from .arrays import askable, text_array
from .cursor import OwnCursor, in_pipeline, sync

Connection: TypeAlias = psycopg.Connection[Any]
Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any] | tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class Meta:
    """What a transaction is told when it begins."""

    identity: str
    """Of the ledger."""
    closing: Closing
    now_ms: int
    """The database's clock."""
    snapshot: str
    """What the transaction sees, in PostgreSQL's own terms."""


def meta_of(row: Row) -> Meta:
    """What the statements ``opening`` and ``meta`` tell; columns that only set something are passed over."""
    identity, sealed_for, copying_from, now_ms, snapshot = row[:5]
    return Meta(identity, Closing(sealed_for, copying_from), now_ms, snapshot)


_COMMIT: Final = b"COMMIT"
NO_META: Final = Meta("", Closing(), 0, "")


class Transaction:
    """A connection on which named statements are run; within a transaction, what that one knows."""

    __slots__ = ("_cursor", "_statements", "address", "connection", "ended", "meta", "wakes")

    def __init__(
        self, connection: Connection, statements: Mapping[str, bytes], address: Address, meta: Meta = NO_META
    ) -> None:
        self.connection = connection
        self.address = address
        self.meta = meta
        self.wakes = False
        """Whether others may be waiting for what this commits."""
        self.ended = False
        """Whether ``last`` has committed it."""
        self._statements = statements
        self._cursor = OwnCursor(connection)

    @property
    def location(self) -> str:
        """The URL without its password."""
        return self.address.location

    def names(self, values: Iterable[str]) -> str:
        """A list of names as a parameter; PostgreSQL's texts cannot carry what no name holds."""
        return text_array(askable(values))

    def kept(self, text: str) -> bytes:
        """PostgreSQL's own type of texts carries no NUL, its bytes do."""
        return text.encode()

    def wake(self) -> None:
        """Notify those who wait when this commits."""
        self.wakes = True

    @property
    def now_ms(self) -> int:
        """The database's clock at the beginning of the transaction."""
        return self.meta.now_ms

    def rows(self, name: str, parameters: Parameters = None) -> list[Row]:
        """Run the statement of that name; all of its rows."""
        return self.send(name, parameters).fetchall()

    def row(self, name: str, parameters: Parameters = None) -> Row | None:
        """The first row, if there is one."""
        return self.send(name, parameters).fetchone()

    def value(self, name: str, parameters: Parameters = None) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self.send(name, parameters).fetchone()
        return None if row is None else row[0]

    def change(self, name: str, parameters: Parameters = None) -> int:
        """Run a statement that changes rows; how many it did change."""
        cursor = self.send(name, parameters)
        if cursor.pgresult is None:  # the caller has begun a pipeline, in which results wait to be asked for
            sync(self.connection)
        return cursor.rowcount

    def last(self, name: str, parameters: Parameters = None) -> list[Row]:
        """Run a statement and commit, in one round trip; its rows."""
        with self.connection.pipeline():
            cursor = self.send(name, parameters)
            if self.wakes:
                self.connection.execute(self._statements["wake"])
            self.connection.execute(_COMMIT)
        self.ended = True
        return cursor.fetchall()

    def commit(self) -> None:
        """Commit, and wake those who wait for it."""
        # One round trip: without parameters psycopg sends several statements at once.
        self.connection.execute(self._statements["wake"] + b"; " + _COMMIT if self.wakes else _COMMIT)
        self.ended = True

    def send(self, name: str, parameters: Parameters = None) -> psycopg.Cursor[Row]:
        """Run a statement; within a pipeline its rows come when that ends."""
        # Prepared statements are state of the session, which a transaction pooler does not keep.
        return self._cursor.execute(self._statements[name], parameters, prepare=False)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """All of it or nothing of it, within the transaction."""
        self._control(b"SAVEPOINT fencepost")
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):  # the first error is the one to tell
                self._end_aborted_pipeline()
                self._control(b"ROLLBACK TO SAVEPOINT fencepost")
                self._control(b"RELEASE SAVEPOINT fencepost")
            raise
        self._control(b"RELEASE SAVEPOINT fencepost")

    def _control(self, statement: bytes) -> None:
        self._cursor.execute(statement, prepare=False)

    def _end_aborted_pipeline(self) -> None:
        """After an error a pipeline refuses every statement up to its next synchronisation."""
        if in_pipeline(self.connection):
            with suppress(psycopg.Error):  # the refusals of statements that were on their way
                sync(self.connection)
