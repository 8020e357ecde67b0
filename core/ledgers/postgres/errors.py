"""PostgreSQL's errors as ours: which of them mean "busy", which "corrupt", and what to do about the rest."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from ...errors import (
    FencepostError,
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerFailed,
)
from .address import Address

_BUSY: Final = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.TooManyConnections,
    errors.QueryCanceled,
)
_CORRUPT: Final = (errors.DataCorrupted, errors.IndexCorrupted)
_HELP: Final[dict[type[psycopg.Error], str]] = {
    errors.DiskFull: "the server's disk is full: make room, then go on",
    errors.OutOfMemory: "the server has no memory left: give it more, or ask for less at a time; then go on",
    errors.ReadOnlySqlTransaction: "it cannot be written: this is a standby, or default_transaction_read_only is on",
    errors.InsufficientPrivilege: "this role may not do that: see docs/how-to/postgresql.md for what it needs",
    errors.UndefinedTable: "tables are missing: was the schema changed while programs had it open? Start them anew",
    psycopg.IntegrityError: "a rule of the schema was broken: run `fencepost doctor`",
}


def translate(error: Exception, address: Address) -> FencepostError:
    """The error of ours that stands for ``error``; raise it ``from error``."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(
            f"a lone surrogate at character {error.start} of a text, which UTF-8 cannot carry; nothing was stored. "
            "Take it out"
        )
    said = address.hide_secrets(_said(error)) or type(error).__name__
    where = address.location
    if isinstance(error, _BUSY):
        return LedgerBusy(f"{where}: {said}; nothing was changed, try again")
    if isinstance(error, _CORRUPT):
        return LedgerCorrupt(f"{where}: {said}; nothing was changed. Restore it from a back-up")
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"a value that PostgreSQL cannot carry: {said}; nothing was stored")
    advice = next((help for kind, help in _HELP.items() if isinstance(error, kind)), None)
    if advice is None and isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        # The server said nothing: it was not reached, or has gone.
        advice = (
            "check the URL, and that the server runs and lets this machine in; then run the command again"
        )
    return LedgerFailed(f"{where}: {said}" + (f" ({advice})" if advice else ""))


def _said(error: Exception) -> str:
    """In one line. Of what the server said without the context, which is all the SQL of a function of ours."""
    whole = str(error)
    if isinstance(error, psycopg.Error) and (primary := error.diag.message_primary):
        whole = " ".join(
            part for part in (primary, error.diag.message_detail, error.diag.message_hint) if part
        )
    return " ".join(whole.split())
