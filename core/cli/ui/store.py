"""The store that a command works on, the instant it works at, and the person who acts."""

from __future__ import annotations

import getpass
import os

from ...config import DEFAULT_STORE, Config, load
from ...errors import InvalidInput
from ...ledgers.open import ledger_exists, open_ledger, parse_store
from ...ledgers.protocol import Ledger
from ...model.clock import logical, wall_ms
from . import options


def store_name(store: str | None, config: str | Config | None) -> str:
    """Return the store that the option names, or else the configuration, as a name that no change of folder moves."""
    if store is not None:
        return absolute_store(store)
    configured = config if isinstance(config, Config) else load(config)
    if configured.store is not None:
        return absolute_store(configured.store, configured.folder)
    return absolute_store(DEFAULT_STORE)


def absolute_store(name: str, folder: str = "") -> str:
    """Return the name of the same store with an absolute path, which begins at ``folder`` if it was relative.

    An effect or another plugin may change the working folder.
    """
    kind, path = parse_store(name)
    if kind == "postgres":
        return path
    whole = os.path.abspath(os.path.join(folder, path))
    if parse_store(whole) == (kind, whole):
        return whole
    return f"sqlite:{whole}" if kind == "sqlite" else f"{whole}/"


def open_existing(store: str | None, config: str | None, now_ms: int = -1) -> Ledger:
    """Open the ledger of that name, on its own clock or the logical one.

    Raises:
        InvalidInput: there is none. These commands make no store, so that a misspelt name is an error.
    """
    name = store_name(store, config)
    if not ledger_exists(name):
        raise InvalidInput(
            f"{name}: there is no ledger of that name; say which with --store, or make one: fencepost enqueue"
        )
    logical_ms = options.logical_or_none(now_ms)
    return open_ledger(name, clock=wall_ms if logical_ms is None else logical(logical_ms))


def instant(ledger: Ledger, now_ms: int) -> int:
    """Return the logical instant that was given, else what the ledger's clock says now."""
    return ledger.now_ms() if now_ms < 0 else now_ms


def actor_or_user(actor: str | None) -> str:
    """Return the name that the audit keeps: the one given, else user@host."""
    if actor is not None:
        return actor
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, as in many containers
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"
