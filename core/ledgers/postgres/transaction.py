"""What runs inside a transaction: named statements, savepoints, and the wake-up at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import tuple_row

from .address import Address
from .arrays import adapt

Connection: TypeAlias = psycopg.Connection[Any]
Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any] | tuple[Any, ...] | None


class Transaction:
    """An open transaction, or for reading a connection on which each statement is one of its own.

    ``now_ms`` is the database's clock at its beginning; 0 where none was begun.
    """

    __slots__ = ("_cursor", "_statements", "address", "connection", "now_ms", "snapshot", "wakes")

    def __init__(
        self,
        connection: Connection,
        statements: Mapping[str, bytes],
        address: Address,
        *,
        now_ms: int = 0,
        snapshot: str = "",
    ) -> None:
        self.connection = connection
        self.address = address
        self.now_ms = now_ms
        self.snapshot = snapshot
        self.wakes = False
        """Whether others may be waiting for what this commits."""
        self._statements = statements
        # The connection may be the caller's own, with a row factory and adapters of its own.
        self._cursor = connection.cursor(binary=True, row_factory=tuple_row)
        adapt(self._cursor)

    def rows(self, name: str, parameters: Parameters = None) -> list[Row]:
        """Run the statement of that name; all of its rows."""
        return self._execute(name, parameters).fetchall()

    def row(self, name: str, parameters: Parameters = None) -> Row | None:
        """The first row, if there is one."""
        return self._execute(name, parameters).fetchone()

    def value(self, name: str, parameters: Parameters = None) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self._execute(name, parameters).fetchone()
        return None if row is None else row[0]

    def change(self, name: str, parameters: Parameters = None) -> int:
        """Run a statement that changes rows; how many it did change."""
        return self._execute(name, parameters).rowcount

    def _execute(self, name: str, parameters: Parameters) -> psycopg.Cursor[Row]:
        # Prepared statements are state of the session, which a transaction pooler does not keep.
        return self._cursor.execute(self._statements[name], parameters, prepare=False)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """All of it or nothing of it, within the transaction."""
        self.connection.execute("SAVEPOINT fencepost")
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):  # the first error is the one to tell
                self.connection.execute("ROLLBACK TO SAVEPOINT fencepost")
                self.connection.execute("RELEASE SAVEPOINT fencepost")
            raise
        self.connection.execute("RELEASE SAVEPOINT fencepost")
