"""Pauses and schedules: what is stored of them, and the tick that fires and advances in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ...errors import FencepostError
from ...model.inputs import NewJob
from ...model.job import Stamps, whole_ms
from ...model.records import Fire, Schedule
from ...model.schedules import (
    boundaries,
    check_schedule,
    fired_job,
    parse_every,
)
from ..rows import stamps_ms
from .reads import text_of
from .transaction import Row, Transaction

_MS: Final = 1_000

EnqueueIfFree: TypeAlias = Callable[[NewJob], bool]
"""Enqueue the job in the tick's transaction; False, and nothing is done, where its id is bound."""


def pause(transaction: Transaction, queue: str) -> bool:
    """Let no claim pick from the queue; False if it was paused."""
    return transaction.change("pause", (queue,)) == 1


def resume(transaction: Transaction, queue: str) -> bool:
    """End the pause; False if there was none."""
    return transaction.change("resume", (queue,)) == 1


def paused(transaction: Transaction) -> list[str]:
    """The queues that are paused, by name."""
    return [queue for (queue,) in transaction.rows("paused")]


def register(transaction: Transaction, schedule: Schedule) -> None:
    """Add or replace a checked schedule that has its next boundary; one that is there stays while ``every`` does."""
    lease_ms, max_attempts, backoff_ms, retention_ms = stamps_ms(schedule.stamps)
    transaction.change(
        "register_schedule",
        {
            "name": schedule.name,
            "every": schedule.every,
            "text": transaction.kept(schedule.text),
            "queue": schedule.queue,
            "effect": schedule.effect,
            "priority": schedule.priority,
            "expires_ms": None if schedule.expires_s is None else whole_ms(schedule.expires_s),
            "next_ms": schedule.next_ms,
            "visibility_timeout_ms": lease_ms,
            "max_attempts": max_attempts,
            "backoff_base_ms": backoff_ms,
            "dead_letter_retention_ms": retention_ms,
        },
    )


def unregister(transaction: Transaction, name: str) -> bool:
    """Remove it; False if there is none."""
    return transaction.change("unregister_schedule", (name,)) == 1


def schedules(transaction: Transaction) -> list[Schedule]:
    """All of them as they are stored, by name."""
    return [_schedule(row) for row in transaction.rows("schedules")]


def soonest(transaction: Transaction) -> int | None:
    """The next boundary of those that can fire: one that cannot would be due for ever."""
    due = [schedule.next_ms for schedule in schedules(transaction) if _fault(schedule) is None]
    return min((next_ms for next_ms in due if next_ms is not None), default=None)


def tick(transaction: Transaction, now_ms: int, enqueue: EnqueueIfFree) -> list[Fire]:
    """Fire what has passed, schedule by schedule; one that cannot fire is reported and harms no other."""
    due = [_schedule(row) for row in transaction.rows("due_schedules", {"now_ms": now_ms})]
    return [fire for schedule in due for fire in _fire(transaction, schedule, now_ms, enqueue)]


def _fire(
    transaction: Transaction, schedule: Schedule, now_ms: int, enqueue: EnqueueIfFree
) -> Iterator[Fire]:
    next_ms = schedule.next_ms or 0
    fault = _fault(schedule)
    if fault is not None:
        yield Fire(schedule.name, "", next_ms, created=False, error=str(fault))
        return
    fired, next_ms = boundaries(next_ms, parse_every(schedule.every), now_ms)
    for boundary_ms in fired:
        job = fired_job(schedule, boundary_ms)
        # An id that is bound counts as fired, whatever it is bound to, and though its job was purged.
        yield Fire(schedule.name, job.id, boundary_ms, created=enqueue(job))
    transaction.change("advance_schedule", {"name": schedule.name, "next_ms": next_ms})


def _fault(schedule: Schedule) -> FencepostError | None:
    """Why it cannot fire: the row was written by another program, or by hand."""
    try:
        check_schedule(schedule)
    except FencepostError as error:
        return error
    return None


def _schedule(row: Row) -> Schedule:
    name, every, text, queue, effect, priority, expires_ms, next_ms, *stamps = row
    return Schedule(
        name,
        every,
        text_of(text),
        queue,
        effect,
        priority,
        expires_s=None if expires_ms is None else expires_ms / _MS,
        stamps=Stamps.from_ms(*stamps),
        next_ms=next_ms,
    )
