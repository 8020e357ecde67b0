"""From the name of a store to its ledger: the one place that knows which kinds there are."""

from __future__ import annotations

import os
from typing import Final

from .clock import Clock, wall_ms
from .errors import InvalidInput
from .ledger import Ledger

POSTGRES: Final = ("postgresql://", "postgres://")
SQLITE: Final = "sqlite:"


def open_ledger(store: str | os.PathLike[str], *, clock: Clock = wall_ms) -> Ledger:
    """Open the ledger of that name, and make it where it is absent. A context manager.

    Args:
        store: a folder; ``sqlite:PATH`` or a path that ends in ``.db``; ``postgresql://…``.
        clock: what ``now_ms=None`` means. PostgreSQL reads the database's clock instead.

    Raises:
        InvalidInput: no kind of ledger has such a name.
        LedgerError: it is there but can not be used; the message says why.
    """
    name = os.fspath(store)
    kind, path = _parse(name)
    if kind == "directory":
        from .ledgers.directory import DirectoryLedger

        return DirectoryLedger(path, clock=clock)
    if kind == "sqlite":
        from .ledgers.sqlite import SqliteLedger

        return SqliteLedger(path, clock=clock)
    from .ledgers.postgres import PostgresLedger

    return PostgresLedger(path)


def _parse(name: str) -> tuple[str, str]:
    if not name or "\0" in name:
        raise InvalidInput("the store has no name: give a folder, a path that ends in .db, or postgresql://…")
    if name.startswith(POSTGRES):
        return "postgres", name
    if name.startswith(SQLITE):
        path = name.removeprefix(SQLITE)
        if not path or path.startswith("//"):
            raise InvalidInput(f"{name!r}: write sqlite:PATH, for example sqlite:jobs.db")
        return "sqlite", path
    if "://" in name:
        raise InvalidInput(
            f"{name!r}: no ledger of this kind; there are folders, sqlite:PATH and postgresql://…"
        )
    return ("sqlite", name) if name.endswith(".db") else ("directory", name)
