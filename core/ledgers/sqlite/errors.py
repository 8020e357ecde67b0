"""SQLite's errors as ours: which of them mean "busy", which "corrupt", and what to do about the rest."""

from __future__ import annotations

import sqlite3
from typing import Final

from ...errors import (
    FencepostError,
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerFailed,
)

_HELP: Final = {
    sqlite3.SQLITE_FULL: "the disk is full: make room, then go on; nothing was changed",
    sqlite3.SQLITE_READONLY: (
        "it cannot be written: look at the permissions of the file and its folder, and whether the storage is read-only"
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened: look at the path and the permissions of its folder; from read-only storage copy it, with "
        "its -wal file, to a place that can be written"
    ),
    sqlite3.SQLITE_IOERR: "reading or writing failed: look at the disk and the system's log",
    sqlite3.SQLITE_CONSTRAINT: "a rule of the schema was broken; nothing was changed: run `fencepost doctor`",
}


def translate(error: Exception, path: str) -> FencepostError:
    """The error of ours that stands for ``error``; raise it ``from error``."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(
            f"a lone surrogate at character {error.start} of a text, which UTF-8 cannot carry; nothing was stored. "
            "Take it out"
        )
    if isinstance(error, OverflowError):
        return InvalidInput(f"a number is larger than 64 bits carry: {error}; nothing was stored")
    # The low byte is the kind of error, the higher ones are the detail.
    code: int = getattr(error, "sqlite_errorcode", 0)
    kind = code & 0xFF
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerBusy(
            f"{path}: another connection held the write lock for too long ({error}); nothing was changed, try again"
        )
    if kind == sqlite3.SQLITE_NOTADB:
        return LedgerCorrupt(
            f"{path}: not a SQLite database ({error}); nothing was changed. If it never was one, give the store "
            "another name; if it was, restore it from a back-up"
        )
    if kind == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error):
        return LedgerCorrupt(
            f"{path}: not a sound SQLite database ({error}); nothing was changed. Restore it from a back-up"
        )
    advice = _HELP.get(kind)
    return LedgerFailed(f"{path}: {error}" + (f" ({advice})" if advice else ""))
