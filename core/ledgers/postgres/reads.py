"""What is read by PostgreSQL's own statements: jobs, pages, counts, and when a claim next finds something."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from ...model.inputs import is_name
from ...model.job import (
    COMPLETED,
    QUEUED,
    STATES,
    Job,
    State,
)
from ...model.query import JobQuery
from ...model.records import Page
from ..rows import job_of
from ..sql.reads import cursor_key, searched
from .arrays import text_array
from .lanes import served_arrays
from .transaction import Transaction

_key: Final = itemgetter(-1)


def find(transaction: Transaction, id: str) -> tuple[str, Job] | None:
    """The job under that id, live or dead; its row is locked until the transaction ends."""
    row = transaction.row("lock_job", {"id": id}) if is_name(id) else None
    return None if row is None else (id, job_of(row))


def purgeable(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> list[str]:
    """Dead jobs whose retention has ended, by their ids."""
    name = "purgeable_all" if queue is None else "purgeable"
    return [id for (id,) in transaction.rows(name, {"queue": queue, "now_ms": now_ms, "limit": limit})]


def expired(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> list[str]:
    """Live jobs whose expiry has passed, by their ids."""
    name = "expired_all" if queue is None else "expired"
    queues = None if queue is None else text_array([queue])
    return [id for (id,) in transaction.rows(name, {"queues": queues, "now_ms": now_ms, "limit": limit})]


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
        found = transaction.rows("page", bounds | {"scan": QUEUED in wanted or COMPLETED in wanted})
    else:
        found = transaction.rows("page_where", bounds | searched(query))
    rows = transaction.rows("jobs_of", {"ids": text_array([id for _, id in found[: query.limit]])})
    rows.sort(key=_key)
    return Page(
        [job_of(row) for row in rows], str(found[query.limit - 1][0]) if len(found) > query.limit else None
    )


def counts(transaction: Transaction, queue: str | None) -> dict[State, int]:
    """A count for each state, 0 included."""
    found: dict[State, int] = dict.fromkeys(STATES, 0)
    found.update(transaction.rows("counts", {"queue": queue}))
    return found


def next_due_ms(
    transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
) -> int | None:
    """When a claim of these could next find something to settle or, in queues that are not paused, to pick."""
    due_ms: int | None = transaction.value("next_due", served_arrays(queues, effects))
    return due_ms
