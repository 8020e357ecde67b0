"""From the name of a store to its ledger: the one place that knows which kinds there are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import InvalidInput, LedgerFailed
from ..model.clock import Clock, wall_ms
from ..model.records import Capabilities
from .protocol import Ledger

if TYPE_CHECKING:
    from .inspection import Inspection

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
    kind, path = parse_store(os.fspath(store))
    _check_place(kind, path)
    if kind == "directory":
        from .directory import DirectoryLedger

        return DirectoryLedger(path, clock=clock)
    if kind == "sqlite":
        from .sqlite import SqliteLedger

        return SqliteLedger(path, clock=clock)
    from .postgres import PostgresLedger

    return PostgresLedger(path)


def open_inspection(store: str | os.PathLike[str], *, clock: Clock = wall_ms) -> Inspection:
    """Open the ledger of that name for a look that changes nothing. A context manager.

    Raises:
        InvalidInput: no kind of ledger has such a name.
        LedgerFailed: something else stands there.
    """
    kind, path = parse_store(os.fspath(store))
    _check_place(kind, path)
    if kind == "directory":
        from .directory.inspection import DirectoryInspection

        return DirectoryInspection(path, clock=clock)
    if kind == "sqlite":
        from .sqlite.inspection import SqliteInspection

        return SqliteInspection(path, clock=clock)
    from .postgres.inspection import PostgresInspection

    return PostgresInspection(path)


def capabilities_of(store: str | os.PathLike[str]) -> Capabilities:
    """What a ledger of that name can do; nothing is opened or made."""
    kind, _ = parse_store(os.fspath(store))
    if kind == "directory":
        from .directory import DirectoryLedger

        return DirectoryLedger.capabilities
    if kind == "sqlite":
        from .sqlite import SqliteLedger

        return SqliteLedger.capabilities
    from .postgres import PostgresLedger

    return PostgresLedger.capabilities


def ledger_exists(store: str | os.PathLike[str]) -> bool:
    """Whether there is a ledger to open; makes nothing. A database server is asked."""
    kind, path = parse_store(os.fspath(store))
    if kind == "directory" and os.path.isdir(path):
        # Any folder could be made a ledger; these two files say that it is one.
        return any(os.path.lexists(os.path.join(path, name)) for name in ("ledger.lock", "jobs.json"))
    if kind == "postgres":
        from .postgres.inspection import is_there

        return is_there(path)
    return os.path.lexists(path)


def parse_store(name: str) -> tuple[str, str]:
    """The kind of ledger that a store's name means (directory, sqlite or postgres), and its path or URL."""
    if not name or "\0" in name:
        raise InvalidInput("the store has no name: give a folder, a path that ends in .db, or postgresql://…")
    if name.startswith(POSTGRES):
        return "postgres", name
    if name.startswith(SQLITE):
        path = name.removeprefix(SQLITE)
        if not path:
            raise InvalidInput(f"{name!r}: names no file; write sqlite:PATH, for example sqlite:jobs.db")
        if path.startswith("//"):
            bare = path.lstrip("/") or "jobs.db"
            raise InvalidInput(
                f"{name!r}: a path, not a URL, follows sqlite: (no //); write sqlite:/{bare} for an absolute path, "
                f"or sqlite:{bare} for one in this folder"
            )
        return "sqlite", path
    if "://" in name:
        raise InvalidInput(
            f"{name!r}: no ledger of this kind; there are folders, sqlite:PATH and postgresql://…"
        )
    return ("sqlite", name) if name.endswith(".db") else ("directory", name)


def _check_place(kind: str, path: str) -> None:
    """Raise LedgerFailed where something stands at a ledger's path that is no ledger, and say what it is.

    No file is opened: whoever closes a SQLite file once more drops the locks that this process has on it.
    """
    if kind == "postgres":
        return
    whole = Path(os.path.abspath(path))
    try:
        os.lstat(whole)
    except (FileNotFoundError, NotADirectoryError):
        pass  # it is made, or what is in its way is named below
    except OSError as error:
        raise LedgerFailed(f"{str(whole)[:200]}: {error.strerror}; name another store") from error
    for place in (whole, *whole.parents):
        if place.exists():
            if place != whole and not place.is_dir():
                raise LedgerFailed(f"{whole}: cannot be made, because {place} is a file; name another store")
            break
        if place.is_symlink():
            raise LedgerFailed(
                f"{place}: is a link to {os.readlink(place)}, which does not exist: make that, or remove the link"
            )
    if kind == "sqlite" and whole.is_dir():
        raise LedgerFailed(
            f"{whole}: is a folder, but this name means a SQLite file; name another one, or for a ledger in that "
            f"folder add a slash: {whole}/"
        )
