"""What is read of both engines' tables in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidInput, LedgerCorrupt
from ...model.inputs import Input
from ...model.job import Job
from ...model.query import JobQuery
from ...model.queue_counts import QueueCounts
from ..rows import job_of
from .transaction import Transaction


def read_inputs(transaction: Transaction, ids: Sequence[str]) -> dict[str, Input]:
    """The inputs that are there.

    Raises:
        LedgerCorrupt: the input of a job is missing.
    """
    rows = transaction.rows("inputs", {"ids": transaction.names(ids)})
    found = {id: Input(id, text_of(text)) for id, text in rows}
    if missing := [id for id in ids if id not in found]:
        bare = transaction.value("job_without_input", {"ids": transaction.names(missing)})
        if bare is not None:
            raise LedgerCorrupt(
                f"{transaction.location}: the job {bare!r} has no input; restore the ledger from a back-up"
            )
    return found


def text_of(kept: str | bytes) -> str:
    """A text as it was given: PostgreSQL keeps texts as bytes, because its own type of texts carries no NUL."""
    return kept.decode("utf-8") if isinstance(kept, bytes) else kept


def get_job(transaction: Transaction, id: str) -> Job | None:
    """The job under that id, live or dead."""
    row = transaction.row("jobs_of", {"ids": transaction.names([id])})
    return None if row is None else job_of(row)


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
