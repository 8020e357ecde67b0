"""What is read: jobs, pages, counts, inputs, and when a claim is next worth while."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

from ...errors import LedgerCorrupt
from ...model.inputs import Input, is_name
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
from .arrays import askable, text_array
from .claim import served_arrays
from .transaction import Transaction

_key: Final = itemgetter(-1)


def read_inputs(transaction: Transaction, ids: Iterable[str]) -> dict[str, Input]:
    """The inputs that are there.

    Raises:
        LedgerCorrupt: the input of a job is missing.
    """
    wanted = askable(ids)
    found = {
        id: Input(id, text.decode()) for id, text in transaction.rows("inputs", {"ids": text_array(wanted)})
    }
    missing = [id for id in wanted if id not in found]
    if missing:
        bare = transaction.value("job_without_input", {"ids": text_array(missing)})
        if bare is not None:
            raise LedgerCorrupt(
                f"{transaction.address.location}: the job {bare!r} has no input; restore the ledger from a back-up"
            )
    return found


def get_job(transaction: Transaction, id: str) -> Job | None:
    """The job under that id, wherever it is."""
    row = transaction.row("jobs_of", {"ids": text_array([id])}) if is_name(id) else None
    return None if row is None else job_of(row)


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
