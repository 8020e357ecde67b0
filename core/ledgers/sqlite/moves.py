"""The moves of one job: the rule is that of ``job.py``; here it is read, moved and stored under the write lock."""

from __future__ import annotations

from typing import Final

from ...model.job import DEAD, Job
from ...model.texts import storable
from ..moves import Rule
from ..rows import job_of
from .arrays import text_array
from .dead import bury, purge, revive
from .transaction import Transaction

_KEY: Final = -1


def find(transaction: Transaction, id: str) -> tuple[int, Job] | None:
    """The job and its key, live or dead."""
    row = transaction.row("jobs_of", {"ids": text_array([id])})
    return None if row is None else (row[_KEY], job_of(row))


def move(transaction: Transaction, id: str, rule: Rule, now_ms: int) -> tuple[Job, Job] | None:
    """Apply the rule to the job; what it was and what it is, or None where the move is refused."""
    found = find(transaction, id)
    if found is None:
        return None
    key, job = found
    moved = rule(job, now_ms)
    if moved is None:
        return None
    if job.state == DEAD:
        revive(transaction, key, moved)
    elif moved.state == DEAD:
        bury(transaction, [key], error=moved.last_error or "", now_ms=moved.died_at_ms or 0)
    elif moved != job:
        _update(transaction, key, moved)
    return job, moved


def forget(transaction: Transaction, id: str) -> Job | None:
    """Purge a dead job; what it was, or None where there is no dead one."""
    found = find(transaction, id)
    if found is None or found[1].state != DEAD:
        return None
    key, job = found
    purge(transaction, [key])
    return job


def _update(transaction: Transaction, key: int, job: Job) -> None:
    transaction.change(
        "move",
        {
            "key": key,
            "state": job.state,
            "version": job.version,
            "lease_until_ms": job.lease_until_ms,
            "attempts": job.attempts,
            "run_at_ms": job.run_at_ms,
            "started_at_ms": job.started_at_ms,
            "completed_at_ms": job.completed_at_ms,
            "last_error": None if job.last_error is None else storable(job.last_error),
        },
    )
