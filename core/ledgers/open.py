"""From the name of a store to its ledger; ``kinds.py`` has the table of the kinds that there are."""

from __future__ import annotations

import os

from ..model.clock import Clock, wall_ms
from ..model.records import Capabilities
from .inspection import Inspection
from .kinds import find_kind
from .protocol import Ledger


def open_ledger(store: str | os.PathLike[str], *, clock: Clock = wall_ms) -> Ledger:
    """Open the ledger of that name, and make it where it is absent. A context manager.

    Args:
        store: a folder; ``sqlite:PATH`` or a path that ends in ``.db``, ``.sqlite`` or ``.sqlite3``;
            ``postgresql://…``.
        clock: what ``now_ms=None`` means. PostgreSQL reads the database's clock instead.

    Raises:
        InvalidInput: no kind of ledger has such a name.
        LedgerError: it is there but can not be used; the message says why.
    """
    _, address, kind = find_kind(os.fspath(store))
    return kind.open(address, clock=clock)


def open_inspection(store: str | os.PathLike[str], *, clock: Clock = wall_ms) -> Inspection:
    """Open the ledger of that name for a look that changes nothing. A context manager.

    Raises:
        InvalidInput: no kind of ledger has such a name.
        LedgerFailed: something else has that name.
    """
    _, address, kind = find_kind(os.fspath(store))
    return kind.inspect(address, clock=clock)


def capabilities_of(store: str | os.PathLike[str]) -> Capabilities:
    """What a ledger of that name can do; nothing is opened or made."""
    return find_kind(os.fspath(store)).loaded.capabilities


def ledger_exists(store: str | os.PathLike[str]) -> bool:
    """Whether there is a ledger to open; makes nothing. A database server is asked."""
    _, address, kind = find_kind(os.fspath(store))
    return kind.exists(address)


def parse_store(name: str) -> tuple[str, str]:
    """The kind of ledger that a store's name means (directory, sqlite or postgres), and its path or URL."""
    kind, address, _ = find_kind(name)
    return kind, address
