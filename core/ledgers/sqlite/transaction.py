"""What runs inside a transaction: named statements, every cursor drained, and savepoints that clean up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from ...model.clock import Clock
from .arrays import text_array

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]


class Transaction:
    """An open transaction, or for reading a connection outside of one.

    The cursor is drained by every method: an unfinished RETURNING leaves its change uncommitted, and an
    unfinished SELECT pins the snapshot.
    """

    __slots__ = ("_clock", "_cursor", "_statements", "connection", "location")

    def __init__(
        self, connection: sqlite3.Connection, statements: Mapping[str, str], location: str, clock: Clock
    ) -> None:
        self.connection = connection
        self.location = location
        self._statements = statements
        self._clock = clock
        # The connection may be the caller's own, with another class of cursors and a row factory.
        self._cursor = sqlite3.Cursor(connection)
        self._cursor.row_factory = None

    @property
    def now_ms(self) -> int:
        """The clock that the ledger was opened with: read under the write lock, once it is had."""
        return self._clock()

    def names(self, values: Iterable[str]) -> str:
        """A list of names as a parameter."""
        return text_array(values)

    def kept(self, text: str) -> str:
        """SQLite keeps any text as it is."""
        return text

    def wake(self) -> None:
        """Whoever waits watches the file."""

    def rows(self, name: str, parameters: Parameters = ()) -> list[Row]:
        """Run the statement of that name; all of its rows."""
        return self._cursor.execute(self._statements[name], parameters).fetchall()

    def row(self, name: str, parameters: Parameters = ()) -> Row | None:
        """The first row, if there is one."""
        rows = self.rows(name, parameters)
        return rows[0] if rows else None

    def value(self, name: str, parameters: Parameters = ()) -> Any:
        """The first column of the first row; None if there is no row."""
        rows = self.rows(name, parameters)
        return rows[0][0] if rows else None

    def change(self, name: str, parameters: Parameters = ()) -> int:
        """Run a statement that changes rows; how many it did change."""
        return self._cursor.execute(self._statements[name], parameters).rowcount

    def change_many(self, name: str, parameters: Iterable[tuple[Any, ...]]) -> int:
        """Run it for each tuple; how many rows were changed in all."""
        return self._cursor.executemany(self._statements[name], parameters).rowcount

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """All of it or nothing of it, within the transaction.

        On an error the change is rolled back and the savepoint released. Where the engine has already ended the
        whole transaction, there is neither; the error that did it is the one that comes out.
        """
        self._cursor.execute("SAVEPOINT fencepost")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                with suppress(sqlite3.Error):  # the first error is the one to tell
                    self._cursor.execute("ROLLBACK TO fencepost")
                    self._cursor.execute("RELEASE fencepost")
            raise
        self._cursor.execute("RELEASE fencepost")
