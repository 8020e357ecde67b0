"""What every operator's command does first: open a ledger that is there, and say who is acting."""

from __future__ import annotations

import getpass
import os

from ...config import load
from ...errors import InvalidInput
from ...ledgers.open import ledger_exists, open_ledger
from ...ledgers.protocol import Ledger
from ...model.clock import logical, wall_ms
from . import options


def open_existing(store: str | None, config: str | None, now_ms: int = -1) -> Ledger:
    """The ledger of that name, on its own clock or the logical one.

    Raises:
        InvalidInput: there is none. Commands that only look or steer make no store out of a misspelt name.
    """
    name = load(config).store if store is None else store
    if not ledger_exists(name):
        raise InvalidInput(
            f"{name}: there is no ledger of that name; say which with --store, or make one: fencepost enqueue"
        )
    logical_ms = options.logical_or_none(now_ms)
    return open_ledger(name, clock=wall_ms if logical_ms is None else logical(logical_ms))


def instant(ledger: Ledger, now_ms: int) -> int:
    """Now: the logical instant where one was given, else by the ledger's clock."""
    return ledger.now_ms() if now_ms < 0 else now_ms


def actor_or_user(actor: str | None) -> str:
    """Who acts, for the audit: the name given, else user@host."""
    if actor is not None:
        return actor
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, as in many containers
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"
