"""The move to the dead and back: out of one table into the other by one statement, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from ...model.job import Job
from ...model.texts import storable
from .arrays import text_array
from .errors import translate
from .transaction import Transaction


def bury(
    transaction: Transaction, ids: Sequence[str], error: str, now_ms: int, nothing_done: bool = False
) -> None:
    """Move live jobs to the dead, each under a new fence and with ``error`` as its last one.

    Their starts are forgotten where ``nothing_done`` says so.
    """
    if not ids:
        return
    moved = {"ids": text_array(ids), "error": storable(error), "now_ms": now_ms, "nothing_done": nothing_done}
    with _whole_move(transaction, len(ids), "to the dead failed; nothing was moved, they are live as before"):
        transaction.change("bury", moved)


def revive(transaction: Transaction, id: str, job: Job) -> None:
    """Move a dead job back to the live ones, as ``job`` says."""
    values = {
        "id": id,
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


def purge(transaction: Transaction, ids: Sequence[str]) -> None:
    """Forget dead jobs; what stays of each is its input, its receipt and its last version."""
    if not ids:
        return
    with _whole_move(transaction, len(ids), "out of the dead failed; nothing was purged"):
        transaction.change("purge", {"ids": text_array(ids)})


@contextmanager
def _whole_move(transaction: Transaction, count: int, failed: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        told = translate(error, transaction.address)
        raise type(told)(f"{told}: moving {count} job{'s' if count > 1 else ''} {failed}") from error
