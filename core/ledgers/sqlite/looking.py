"""What is read: jobs, pages, counts, inputs, the audit, and when a claim is next worth while."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from ...errors import InvalidInput, LedgerCorrupt
from ...filters import ALL_JOBS, JobFilter
from ...inputs import Input, is_name
from ...job import COMPLETED, DEAD, HELD, QUEUED, RUNNING, STATES, Job, State
from ...ledger import AuditEntry, Page
from ...overview import QueueCounts
from ..rows import job_of
from .claiming import lanes, open_lanes
from .transaction import Transaction


def read_inputs(transaction: Transaction, ids: Iterable[str]) -> dict[str, Input]:
    """The inputs that are there.

    Raises:
        LedgerCorrupt: the input of a job is missing.
    """
    wanted = [id for id in ids if is_name(id)]
    found = {id: Input(id, text) for id, text in transaction.rows("inputs", {"ids": json.dumps(wanted)})}
    missing = [id for id in wanted if id not in found]
    if missing:
        bare = transaction.value("job_without_input", {"ids": json.dumps(missing)})
        if bare is not None:
            raise LedgerCorrupt(
                f"{transaction.path}: the job {bare!r} has no input; restore the ledger from a back-up"
            )
    return found


def get_job(transaction: Transaction, id: str) -> Job | None:
    """The job under that id, wherever it is."""
    row = transaction.row("jobs_of", {"ids": json.dumps([id])})
    return None if row is None else job_of(row)


def jobs(
    transaction: Transaction,
    *,
    states: Sequence[State] | None = None,
    queue: str | None = None,
    effect: str | None = None,
    where: JobFilter = ALL_JOBS,
    after: str | None,
    limit: int,
) -> Page:
    """A page in order of enqueue; the cursor is the key of its last job."""
    wanted = STATES if states is None else states
    bounds = {
        "after": cursor_key(after),
        "states": json.dumps(wanted),
        "queue": queue,
        "effect": effect,
        "limit": limit + 1,
    }
    if where == ALL_JOBS:
        found = transaction.rows("keys", bounds | {"scan": QUEUED in wanted or COMPLETED in wanted})
    else:
        found = transaction.rows("keys_where", bounds | asdict(where))
    keys = [key for (key,) in found[:limit]]
    rows = transaction.rows("jobs_at", {"keys": json.dumps(keys)})
    return Page([job_of(row) for row in rows], str(keys[-1]) if len(found) > limit else None)


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


def counts(transaction: Transaction, queue: str | None) -> dict[State, int]:
    """A count for each state, 0 included."""
    if queue is not None:
        found: dict[State, int] = dict.fromkeys(STATES, 0)
        found.update(transaction.rows("counts_of_queue", {"queue": queue}))
        return found
    ((live, queued, running, held, dead),) = transaction.rows("counts")
    completed = live - queued - running - held
    return {QUEUED: queued, RUNNING: running, COMPLETED: completed, DEAD: dead, HELD: held}


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


def next_due_ms(
    transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
) -> int | None:
    """When a claim of these could next find something to settle or, in queues that are not paused, to pick."""
    served = lanes(transaction, queues, effects)
    bounds = {"lanes": json.dumps(served), "open_lanes": json.dumps(open_lanes(transaction, served))}
    due_ms: int | None = transaction.value("next_due", bounds)
    return due_ms


def audit(transaction: Transaction, id: str | None, limit: int) -> list[AuditEntry]:
    """The latest entries, oldest first."""
    if id is None:
        return [AuditEntry(*row) for row in transaction.rows("audit", {"limit": limit})]
    return [AuditEntry(*row) for row in transaction.rows("audit_of", {"id": id, "limit": limit})]
