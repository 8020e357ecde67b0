"""Looking at the jobs of a directory ledger: pages, counts, and what is due next."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import job as moves
from ...model.inputs import check_name
from ...model.job import State
from ...model.query import JobQuery
from ...model.records import Page
from .table import Table


def page(table: Table, query: JobQuery) -> Page:
    """Some jobs in order of enqueue; the cursor is the id of the last one."""
    found = [job for job in table.in_order() if query.matches(job)]
    if query.after is not None:
        place = table.order_of(check_name(query.after, "cursor"))
        found = [job for job in found if table.order_of(job.id) > place]
    shown = found[: query.limit]
    return Page(shown, shown[-1].id if len(found) > query.limit else None)


def counts(table: Table, queue: str | None) -> dict[State, int]:
    """A count for each state, 0 included."""
    counted: dict[State, int] = dict.fromkeys(moves.STATES, 0)
    for job in table.jobs.values():
        if queue is None or job.queue == queue:
            counted[job.state] += 1
    return counted


def next_due_ms(
    table: Table, queues: Sequence[str] | None, effects: Sequence[str] | None, paused: frozenset[str]
) -> int | None:
    """The soonest of what ``moves.next_due_ms`` says of the jobs served; a paused one waits only for its expiry."""
    return min(
        (
            due_ms
            for job in table.jobs.values()
            if (queues is None or job.queue in queues)
            and (effects is None or job.effect in effects)
            and (
                due_ms := job.expires_at_ms
                if job.queue in paused and job.state == moves.QUEUED
                else moves.next_due_ms(job)
            )
            is not None
        ),
        default=None,
    )
