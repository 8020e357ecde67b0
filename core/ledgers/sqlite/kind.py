"""The SQLite ledger as a kind: what a store's name means, and what opens it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ...errors import InvalidInput, LedgerFailed
from ...model.clock import Clock
from ..names import path_of
from ..paths import check_path
from .ledger import SqliteLedger

if TYPE_CHECKING:
    from .inspection import SqliteInspection


class SqliteKind:
    """See ``kinds.KindOfLedger``; an address is a path."""

    capabilities: Final = SqliteLedger.capabilities

    def address(self, rest: str) -> str:
        """The path; what follows ``sqlite:`` is none where it begins as in a URL."""
        if not rest:
            raise InvalidInput("sqlite: names no file; write sqlite:PATH, for example sqlite:jobs.db")
        if rest.startswith("//"):
            bare = rest.lstrip("/") or "jobs.db"
            raise InvalidInput(
                f"{'sqlite:' + rest!r}: a path, not a URL, follows sqlite: (no //); write sqlite:/{bare} for an "
                f"absolute path, or sqlite:{bare} for one in this folder"
            )
        return path_of(rest)

    def open(self, address: str, *, clock: Clock) -> SqliteLedger:
        """Open the file, and make it where it is absent."""
        _check_place(address)
        return SqliteLedger(address, clock=clock)

    def inspect(self, address: str, *, clock: Clock) -> SqliteInspection:
        """Open it for a look."""
        from .inspection import SqliteInspection  # only the doctor needs it

        _check_place(address)
        return SqliteInspection(address, clock=clock)

    def exists(self, address: str) -> bool:
        """Whether there is anything of that name."""
        return os.path.lexists(address)


def _check_place(path: str) -> None:
    whole = check_path(path)
    if whole.is_dir():
        raise LedgerFailed(
            f"{whole}: is a folder, but this name means a SQLite file; name another one, or for a ledger in that "
            f"folder add a slash: {whole}/"
        )
