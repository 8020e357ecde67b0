"""One PostgreSQL database: its connections, its schema, and the transactions on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ...errors import InvalidInput, LedgerReplaced
from ..arguments import check_connection
from ..statements import load
from .address import Address
from .cursor import in_pipeline, sync
from .errors import translate
from .migrations import check_encoding, make
from .pool import Pool
from .transaction import (
    NO_META,
    Connection,
    Meta,
    Parameters,
    Row,
    Transaction,
    meta_of,
)

_BEGIN: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED"
"""Said, because a role or a database may have another default, under which workers at one queue only fail."""


@cache
def statements(schema: str, channel: str) -> Mapping[str, bytes]:
    """The statements of ``queries.sql`` for a schema, read when first needed."""
    named = load(Path(__file__).with_name("queries.sql"))
    return {
        name: text.replace("{schema}", f'"{schema}"').replace("{channel}", channel).encode()
        for name, text in named.items()
    }


class Database:
    """Nothing is connected to or made before it is needed."""

    def __init__(self, address: Address, *, max_connections: int, timeout_s: float) -> None:
        self.address: Final = address
        self.statements: Final = statements(address.schema, address.channel)
        self._pool = Pool(self.connect, location=address.location, most=max_connections, timeout_s=timeout_s)
        self._making = threading.Lock()
        self._made = False
        self._identity: str | None = None

    @property
    def location(self) -> str:
        """The URL without its password."""
        return self.address.location

    # -- transactions --

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """For single statements: each sees a moment of its own, without a transaction around it."""
        with self._connection() as connection:
            yield self._transaction(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """A transaction that reads: all of it sees one moment."""
        with self._connection() as connection:
            self._begin(connection, b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "settings")
            yield self._transaction(connection)
            connection.execute("COMMIT")

    @contextmanager
    def write(self, *, even_sealed: bool = False, even_copying: bool = False) -> Iterator[Transaction]:
        """A transaction that changes something; committed at the end, rolled back on any error.

        The flags admit a closed ledger; no other transaction that writes is then under way.

        Raises:
            LedgerBusy: a lock or a connection was not had in time.
            LedgerSealed: the ledger has moved, or waits for the rest of a copy.
        """
        first = ("stop_work",) if even_sealed or even_copying else ()
        with self._connection() as connection:
            meta = meta_of(self._begin(connection, _BEGIN, *first, "opening"))
            self._admit(meta, even_sealed=even_sealed, even_copying=even_copying)
            with self._committed(self._transaction(connection, meta)) as transaction:
                yield transaction

    @contextmanager
    def write_ahead(self, *ahead: tuple[str, Parameters]) -> Iterator[tuple[Transaction, list[list[Row]]]]:
        """As ``write``, and what these statements gave that were sent along with its beginning.

        All in one round trip; each round trip of a busy worker may have to wait for the interpreter's lock.
        """
        with self._connection() as connection:
            with connection.pipeline():
                connection.execute(_BEGIN)
                opening = connection.execute(self.statements["opening"])
                cursors = [self._transaction(connection).send(*statement) for statement in ahead]
            meta = meta_of(opening.fetchall()[0])
            self._admit(meta)
            rows = [cursor.fetchall() for cursor in cursors]
            with self._committed(self._transaction(connection, meta)) as transaction:
                yield transaction, rows

    @contextmanager
    def join(self, connection: Any) -> Iterator[Transaction]:
        """A part of the caller's own transaction in the same database: commit and rollback stay theirs.

        Raises:
            InvalidInput: no psycopg connection to this database, or not in a transaction.
        """
        connection = check_connection(connection, psycopg.Connection)
        with self.read() as own:
            identity = meta_of(own.rows("meta")[0]).identity
        if in_pipeline(connection):
            sync(connection)  # only then it is known in which state the transaction is
        status = connection.info.transaction_status
        if status == TransactionStatus.INERROR:
            raise InvalidInput("the connection's transaction has failed already: roll it back first")
        if connection.autocommit and status == TransactionStatus.IDLE:
            raise InvalidInput("the connection is in no transaction that could be joined: begin one first")
        with self._translated():
            transaction = self._transaction(connection)
            with transaction.savepoint():
                transaction.meta = self._meta_of(transaction, identity)
                transaction.meta.closing.refuse(self.address.location)
                yield transaction
                if transaction.wakes:
                    transaction.change("wake")

    def _meta_of(self, joined: Transaction, identity: str) -> Meta:
        """What the caller's connection finds of this ledger; the clock is that of this moment."""
        with suppress(psycopg.errors.UndefinedTable):
            meta = meta_of(joined.rows("meta")[0])
            if meta.identity == identity:
                return meta
        raise InvalidInput(
            f"the connection is not to the database of {self.address.location}: a transaction spans one database"
        )

    @contextmanager
    def _committed(self, transaction: Transaction) -> Iterator[Transaction]:
        yield transaction
        if not transaction.ended:
            transaction.commit()

    def _admit(self, meta: Meta, *, even_sealed: bool = False, even_copying: bool = False) -> None:
        if self._identity is None:
            self._identity = meta.identity
        elif self._identity != meta.identity:
            raise LedgerReplaced(
                f"{self.address.location}: the ledger was replaced by another one while it was in use; open it anew"
            )
        meta.closing.refuse(self.address.location, even_sealed=even_sealed, even_copying=even_copying)

    # -- connections --

    def connect(self) -> Connection:
        """A connection of its own, outside of the pool; makes the schema where it is absent."""
        connection: Connection = psycopg.connect(
            self.address.conninfo, autocommit=True, prepare_threshold=None, row_factory=tuple_row
        )
        try:
            self._make(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the connections, those in use when they are put back."""
        self._pool.close()

    def _make(self, connection: Connection) -> None:
        """See to it, once, that the schema is there, and one that this program knows."""
        with self._making:
            if self._made:
                return
            check_encoding(connection, self.address)
            make(connection, self.address)
            self._made = True

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """One of the pool's; what it is in the middle of when an error comes is rolled back."""
        with self._translated():
            connection = self._pool.take()
            try:
                yield connection
            except psycopg.errors.ReadOnlySqlTransaction:
                connection.close()  # to a server that was the primary; a new one may find the one that is
                raise
            except BaseException:
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):  # the first error is the one to tell
                        connection.execute("ROLLBACK")
                raise
            finally:
                self._pool.put(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, UnicodeError) as error:
            raise translate(error, self.address) from error

    def _begin(self, connection: Connection, begin: bytes, *names: str) -> Row:
        """Begin a transaction and run statements in it, all in one round trip; the row that the last gives."""
        # Without parameters psycopg sends several statements at once.
        cursor = connection.execute(b";\n".join([begin, *(self.statements[name] for name in names)]))
        while cursor.nextset():
            pass
        row: Row = cursor.fetchall()[0]
        return row

    def _transaction(self, connection: Connection, meta: Meta = NO_META) -> Transaction:
        return Transaction(connection, self.statements, self.address, meta)
