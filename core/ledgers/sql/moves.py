"""The moves of one job: the rule is that of ``job.py``; here the job is read, moved and stored while it is locked."""

from __future__ import annotations

from ...model.job import DEAD, QUEUED, Job
from ...model.texts import storable
from ..verbs import Rule
from .engine import Engine
from .transaction import AnyTransaction, Transaction


def move(
    transaction: AnyTransaction, engine: Engine[AnyTransaction], id: str, rule: Rule, now_ms: int
) -> tuple[Job, Job] | None:
    """Apply the rule to the job; the job before and after it, or None where the move is refused."""
    found = engine.find(transaction, id)
    if found is None:
        return None
    place, job = found
    moved = rule(job, now_ms)
    if moved is None:
        return None
    if job.state == DEAD:
        engine.revive(transaction, place, moved)
    elif moved.state == DEAD:
        error, died_at_ms, nothing_done = (
            moved.last_error or "",
            moved.died_at_ms or 0,
            moved.started_at_ms is None,
        )
        engine.bury(transaction, [place], error, died_at_ms, nothing_done)
    elif moved != job:
        _update(transaction, moved)
    if moved.state == QUEUED:
        transaction.wake()
    return job, moved


def forget(transaction: AnyTransaction, engine: Engine[AnyTransaction], id: str) -> Job | None:
    """Purge a dead job; the job before, or None where there is no dead one."""
    found = engine.find(transaction, id)
    if found is None or found[1].state != DEAD:
        return None
    place, job = found
    engine.purge(transaction, [place])
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
            "priority": job.priority,
            "run_at_ms": job.run_at_ms,
            "started_at_ms": job.started_at_ms,
            "completed_at_ms": job.completed_at_ms,
            "last_error": None if job.last_error is None else storable(job.last_error),
        },
    )
