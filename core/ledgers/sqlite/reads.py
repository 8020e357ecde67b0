"""What is read by SQLite's own statements: jobs, pages, counts, and when a claim next finds something."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from ...model.job import (
    COMPLETED,
    DEAD,
    HELD,
    QUEUED,
    RUNNING,
    STATES,
    Job,
    State,
)
from ...model.query import JobQuery
from ...model.records import Page
from ..rows import job_of
from ..sql.reads import cursor_key, searched
from .arrays import text_array
from .lanes import Lanes
from .transaction import Transaction

_KEY: Final = -1


def find(transaction: Transaction, id: str) -> tuple[int, Job] | None:
    """The key and the job, live or dead."""
    row = transaction.row("jobs_of", {"ids": text_array([id])})
    return None if row is None else (row[_KEY], job_of(row))


def purgeable(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> list[int]:
    """Dead jobs whose retention has ended, by their keys."""
    name = "purgeable_all" if queue is None else "purgeable"
    return [key for (key,) in transaction.rows(name, {"queue": queue, "now_ms": now_ms, "limit": limit})]


def expired(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> list[int]:
    """Live jobs whose expiry has passed, by their keys."""
    lanes = Lanes(transaction, None if queue is None else [queue], None)
    return [key for (key,) in lanes.rows("expired", {"now_ms": now_ms, "limit": limit})]


def jobs(transaction: Transaction, query: JobQuery) -> Page:
    """A page in order of enqueue; the cursor is the key of its last job."""
    wanted = STATES if query.states is None else query.states
    bounds = {
        "after": cursor_key(query.after),
        "states": text_array(wanted),
        "queue": query.queue,
        "effect": query.effect,
        "limit": query.limit + 1,
    }
    if not query.searches:
        found = transaction.rows("keys", bounds | {"scan": QUEUED in wanted or COMPLETED in wanted})
    else:
        found = transaction.rows("keys_where", bounds | searched(query))
    keys = [key for (key,) in found[: query.limit]]
    rows = transaction.rows("jobs_at", {"keys": json.dumps(keys)})
    return Page([job_of(row) for row in rows], str(keys[-1]) if len(found) > query.limit else None)


def counts(transaction: Transaction, queue: str | None) -> dict[State, int]:
    """A count for each state, 0 included."""
    if queue is not None:
        found: dict[State, int] = dict.fromkeys(STATES, 0)
        found.update(transaction.rows("counts_of_queue", {"queue": queue}))
        return found
    ((live, queued, running, held, dead),) = transaction.rows("counts")
    completed = live - queued - running - held
    return {QUEUED: queued, RUNNING: running, COMPLETED: completed, DEAD: dead, HELD: held}


def next_due_ms(
    transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
) -> int | None:
    """When a claim of these could next find something to settle or, in queues that are not paused, to pick."""
    lanes = Lanes(transaction, queues, effects)
    ((due_ms,),) = lanes.rows("next_due", {"resuming": text_array(lanes.resuming())})
    found: int | None = due_ms
    return found
