"""What the shared part of the SQL ledgers needs of an engine: a database, its transactions, and statements by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any] | tuple[Any, ...]


class Transaction(Protocol):
    """An open transaction of either engine. The statements that are run here give the same columns in both."""

    @property
    def location(self) -> str:
        """Where the ledger lies, as people may see it."""

    @property
    def now_ms(self) -> int:
        """The ledger's own clock."""

    def rows(self, name: str, parameters: Parameters = ..., /) -> list[Row]:
        """Run the statement of that name; all of its rows."""

    def row(self, name: str, parameters: Parameters = ..., /) -> Row | None:
        """The first row; None if there is none."""

    def value(self, name: str, parameters: Parameters = ..., /) -> Any:
        """The first column of the first row; None if there is no row."""

    def change(self, name: str, parameters: Parameters = ..., /) -> int:
        """Run a statement that changes rows; how many it did change."""

    def names(self, values: Iterable[str], /) -> str:
        """A list of ids or other names as a parameter; those that nothing can be called are left out."""

    def kept(self, text: str, /) -> str | bytes:
        """A text as the engine keeps it: any that UTF-8 can carry, NUL included."""

    def wake(self) -> None:
        """Let idle workers look again when this commits."""


AnyTransaction = TypeVar("AnyTransaction", bound=Transaction)
_Given = TypeVar("_Given", bound=Transaction, covariant=True)


class Database(Protocol[_Given]):
    """A database of either engine, which opens connections and makes its schema when they are needed."""

    @property
    def location(self) -> str:
        """Where it lies, as people may see it, and as ``open_ledger`` takes it."""

    def read(self) -> AbstractContextManager[_Given]:
        """For one statement that reads."""

    def snapshot(self) -> AbstractContextManager[_Given]:
        """For several statements that read, all of one moment."""

    def write(self, *, even_sealed: bool = ..., even_copying: bool = ...) -> AbstractContextManager[_Given]:
        """A transaction that changes something; committed at the end, rolled back on any error.

        The flags admit a closed ledger; no other transaction that writes is then under way.
        """

    def join(self, connection: object) -> AbstractContextManager[_Given]:
        """A part of the caller's own transaction, whose commit and rollback stay theirs."""


def instant(transaction: Transaction, now_ms: int | None) -> int:
    """The instant of a verb: what it was given, else the ledger's own clock."""
    return transaction.now_ms if now_ms is None else now_ms
