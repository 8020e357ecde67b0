"""The moves of one job: the rule is that of ``job.py``; here it is read, moved and stored while its row is locked."""

from __future__ import annotations

from ...model.inputs import is_name
from ...model.job import DEAD, QUEUED, Job
from ...model.texts import storable
from ..moves import Rule
from ..rows import job_of
from .dead import bury, purge, revive
from .transaction import Transaction


def find(transaction: Transaction, id: str) -> Job | None:
    """The job, live or dead; nobody else moves it until the transaction ends."""
    row = transaction.row("lock_job", {"id": id}) if is_name(id) else None
    return None if row is None else job_of(row)


def move(transaction: Transaction, id: str, rule: Rule, now_ms: int) -> tuple[Job, Job] | None:
    """Apply the rule to the job; what it was and what it is, or None where the move is refused."""
    job = find(transaction, id)
    moved = None if job is None else rule(job, now_ms)
    if job is None or moved is None:
        return None
    if job.state == DEAD:
        revive(transaction, moved)
    elif moved.state == DEAD:
        bury(transaction, [id], error=moved.last_error or "", now_ms=moved.died_at_ms or 0)
    elif moved != job:
        _update(transaction, moved)
    if moved.state == QUEUED:
        transaction.wakes = True
    return job, moved


def forget(transaction: Transaction, id: str) -> Job | None:
    """Purge a dead job; what it was, or None where there is no dead one."""
    job = find(transaction, id)
    if job is None or job.state != DEAD:
        return None
    purge(transaction, [id])
    return job


def _update(transaction: Transaction, job: Job) -> None:
    transaction.change(
        "move",
        {
            "id": job.id,
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
