"""The move to the dead and back: out of one table into the other, whole or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...model.job import Job
from ...model.texts import storable
from .errors import translate
from .transaction import Transaction


def bury(
    transaction: Transaction, keys: Sequence[int], error: str, now_ms: int, nothing_done: bool = False
) -> None:
    """Move live jobs to the dead, each under a new fence and with ``error`` as its last one.

    Their starts are forgotten where ``nothing_done`` says so.

    Raises:
        LedgerFailed: the engine refused; the jobs are where they were, unchanged.
    """
    if not keys:
        return
    moved = {"keys": json.dumps(keys)}
    with _whole_move(
        transaction, len(keys), "to the dead failed; nothing was moved, they are live as before"
    ):
        transaction.change(
            "bury", moved | {"error": storable(error), "now_ms": now_ms, "nothing_done": nothing_done}
        )
        transaction.change("forget_buried", moved)


def revive(transaction: Transaction, key: int, job: Job) -> None:
    """Move a dead job back to the live ones, as ``job`` says.

    Raises:
        LedgerFailed: the engine refused; the job is dead as before.
    """
    values = {
        "key": key,
        "state": job.state,
        "version": job.version,
        "attempts": job.attempts,
        "run_at_ms": job.run_at_ms,
        "expires_at_ms": job.expires_at_ms,
        "started_at_ms": job.started_at_ms,
        "last_error": job.last_error,
    }
    with _whole_move(transaction, 1, "back from the dead failed; nothing was moved, it is dead as before"):
        transaction.change("revive", values)
        transaction.change("forget_dead", {"keys": json.dumps([key])})


def purge(transaction: Transaction, keys: Sequence[int]) -> None:
    """Forget dead jobs; what stays of each is its input, its receipt and its last version."""
    if not keys:
        return
    purged = {"keys": json.dumps(keys)}
    with _whole_move(transaction, len(keys), "out of the dead failed; nothing was purged"):
        transaction.change("add_purged", purged)
        transaction.change("forget_dead", purged)


@contextmanager
def _whole_move(transaction: Transaction, count: int, failed: str) -> Iterator[None]:
    try:
        with transaction.savepoint():
            yield
    except sqlite3.Error as error:
        told = translate(error, transaction.location)
        raise type(told)(f"{told}: moving {count} job{'s' if count > 1 else ''} {failed}") from error
