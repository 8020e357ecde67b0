"""The path of a ledger on disk: whatever is in its way is named before anything is made."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import LedgerFailed


def check_path(path: str) -> Path:
    """The absolute path, at which a ledger is or can be made.

    No file is opened: whoever closes a SQLite file once more drops the locks that this process has on it.

    Raises:
        LedgerFailed: something is in its way, or its folder does not exist. A misspelt name makes no folders.
    """
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
    if not whole.parent.exists():
        raise LedgerFailed(
            f"{whole}: its folder {whole.parent} does not exist; look at the name of the store, or make the folder "
            "first"
        )
    return whole
