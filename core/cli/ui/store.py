"""The store that a command works on, the instant it works at, and the person who acts."""

from __future__ import annotations

import getpass
import os

from ...errors import InvalidInput
from ...ledgers.open import ledger_exists, open_ledger
from ...ledgers.protocol import Ledger
from ...model.clock import logical, wall_ms
from ...stores import store_name
from . import options


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
