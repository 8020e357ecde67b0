"""Names of stores: which spellings there are, and that none which may hold a password is shown or made a folder."""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from ..errors import InvalidInput

SQLITE_SUFFIXES: Final = (".db", ".sqlite", ".sqlite3")
"""A path that ends so, in letters of either case, means a SQLite file."""

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)", re.DOTALL)
_CONNINFO: Final = re.compile(
    r"(?:^|\s)(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=", re.IGNORECASE
)
_CREDENTIALS: Final = re.compile(r"[^/\s]*:[^/\s]*@")
_FORMS: Final = "there are folders, sqlite:PATH and postgresql://…"


class SplitName(NamedTuple):
    """A store's name, divided: ``scheme`` is in lower case, and None for a bare path."""

    scheme: str | None
    rest: str
    """What follows the scheme and its colon, or the whole path."""


def split_name(name: str, schemes: tuple[str, ...]) -> SplitName:
    """Divide the name of a store.

    Args:
        schemes: those that kinds of ledgers answer to.

    Raises:
        InvalidInput: it names nothing, or looks like a URL or a connection string that no kind of ledger takes. It is
            not shown then, because it may hold a password.
    """
    if not name or "\0" in name:
        raise InvalidInput("the store has no name: give a folder, a path that ends in .db, or postgresql://…")
    found = _URL.fullmatch(name)
    if found:
        scheme, slashes, rest = found[1].lower(), found[2], found[3]
        if scheme in schemes:
            return SplitName(scheme, (slashes or "") + rest)
        base, plus, driver = scheme.partition("+")
        if plus and base in schemes:
            raise InvalidInput(
                f"{base}+{driver}: the name of a driver has no place here; write {_form_of(base)} without +{driver}"
            )
    if "://" in name:
        what = f"{found[1]}://…" if found and found[2] else "a name with :// in it"
        raise InvalidInput(f"{what}: no ledger of this kind; {_FORMS}")
    if _CONNINFO.search(name):
        raise InvalidInput(
            "the store looks like a connection string of PostgreSQL (host=… dbname=…): write it as a URL, "
            "postgresql://user:password@host:port/database"
        )
    if _CREDENTIALS.match(name):
        raise InvalidInput(
            "the store looks like user:password@host without a scheme: write postgresql://user:password@host/database"
        )
    return SplitName(None, name)


def path_of(name: str) -> str:
    """The path that a name means: ``~`` is somebody's home, also where no shell has said so.

    Raises:
        InvalidInput: nobody has that name.
    """
    path = os.path.expanduser(name)
    if path.startswith("~"):
        user = path.partition("/")[0]
        raise InvalidInput(f"{name!r}: there is no user {user[1:]!r}; for a file of that name write ./{name}")
    return path


def is_sqlite_name(path: str) -> bool:
    """Whether a bare path means a SQLite file."""
    return path.lower().endswith(SQLITE_SUFFIXES)


def _form_of(scheme: str) -> str:
    return "sqlite:PATH" if scheme == "sqlite" else f"{scheme}://…"
