"""What is read of both engines' jobs in the same way."""

from __future__ import annotations

from ...errors import InvalidInput
from ...model.job import Job
from ...model.query import JobQuery
from ...model.queue_counts import QueueCounts
from ..rows import job_of
from .transaction import Transaction


def cursor_key(cursor: str | None) -> int:
    """The key in a cursor; 0 for none.

    Raises:
        InvalidInput: it is no cursor of this ledger.
    """
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidInput(f"{cursor!r:.80} is no cursor: give the one that the page before returned")
    return int(cursor)


def searched(query: JobQuery) -> dict[str, str | int | None]:
    """What a search compares with each job, as the statements name it."""
    return {
        "error": query.error,
        "min_attempts": query.min_attempts,
        "max_attempts": query.max_attempts,
        "since_ms": query.since_ms,
        "until_ms": query.until_ms,
    }


def queue_counts(transaction: Transaction, *, now_ms: int, since_ms: int) -> list[QueueCounts]:
    """By one statement; a queue that has dead jobs and others comes in two rows, which are put together."""
    queues: dict[str, QueueCounts] = {}
    for queue, ready, delayed, running, completed, held, oldest_ms, done, dead, died in transaction.rows(
        "queue_counts", {"now_ms": now_ms, "since_ms": since_ms}
    ):
        before = queues.get(queue, QueueCounts(queue, completed_since=0))
        queues[queue] = QueueCounts(
            queue,
            ready=before.ready + ready,
            delayed=before.delayed + delayed,
            running=before.running + running,
            completed=before.completed + completed,
            dead=before.dead + dead,
            held=before.held + held,
            oldest_ready_ms=before.oldest_ready_ms if oldest_ms is None else oldest_ms,
            completed_since=(before.completed_since or 0) + done,
            died_since=before.died_since + died,
        )
    return [queues[queue] for queue in sorted(queues)]


def latest_deaths(transaction: Transaction, limit: int) -> list[Job]:
    """From the table of the dead."""
    return [job_of(row) for row in transaction.rows("latest_deaths", {"limit": limit})]
