"""The kinds of ledgers: one table from the spellings of a store's name to what opens it.

A kind is loaded when a store of it is first named, so that no command pays for an engine that it does not use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ..model.clock import Clock
from ..model.records import Capabilities
from .inspection import Inspection
from .names import SQLITE_SUFFIXES, split_name
from .protocol import Ledger


class KindOfLedger(Protocol):
    """What a kind brings. An address is what it made of a store's name: a path, or a URL."""

    @property
    def capabilities(self) -> Capabilities:
        """What its ledgers can do; nothing is opened or made to know it."""

    def address(self, rest: str, /) -> str:
        """The address in a name, without its scheme and colon.

        Raises:
            InvalidInput: the name is not spelt as this kind wants it.
        """

    def open(self, address: str, /, *, clock: Clock) -> Ledger:
        """Open the ledger, and make it where it is absent."""

    def inspect(self, address: str, /, *, clock: Clock) -> Inspection:
        """Open the ledger for a look that changes nothing."""

    def exists(self, address: str, /) -> bool:
        """Whether there is a ledger to open; makes nothing. A database server is asked."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the stores of one kind are named."""

    kind: str
    schemes: tuple[str, ...]
    suffixes: tuple[str, ...]
    """Endings, in lower case, by which a path without a scheme is of this kind; an empty one fits every path."""
    load: Callable[[], KindOfLedger]


def _sqlite() -> KindOfLedger:
    from .sqlite.kind import SqliteKind

    return SqliteKind()


def _postgres() -> KindOfLedger:
    from .postgres.kind import PostgresKind

    return PostgresKind()


def _directory() -> KindOfLedger:
    from .directory.kind import DirectoryKind

    return DirectoryKind()


KINDS: Final = (
    Spelling("postgres", ("postgresql", "postgres"), (), _postgres),
    Spelling("sqlite", ("sqlite",), SQLITE_SUFFIXES, _sqlite),
    Spelling("directory", (), ("",), _directory),
)
"""In the order in which a path without a scheme is tried."""


class Store(NamedTuple):
    """A store's name as its kind understands it."""

    kind: str
    address: str
    loaded: KindOfLedger


def find_kind(name: str, kinds: tuple[Spelling, ...] = KINDS) -> Store:
    """The kind of ledger that a store's name means, and the address in it.

    Raises:
        InvalidInput: no kind of ledger has such a name.
    """
    scheme, rest = split_name(name, tuple(scheme for one in kinds for scheme in one.schemes))
    if scheme is None:
        spelling = next(one for one in kinds if one.suffixes and rest.lower().endswith(one.suffixes))
    else:
        spelling = next(one for one in kinds if scheme in one.schemes)
    loaded = spelling.load()
    return Store(spelling.kind, loaded.address(rest), loaded)
