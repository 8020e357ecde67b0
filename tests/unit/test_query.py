"""Which jobs a query finds."""

from __future__ import annotations

import pytest
from fencepost.core.model.job import Job
from fencepost.core.model.query import JobQuery

OLD = Job("old", effect="send", enqueued_at_ms=100, attempts=1, last_error="TimeoutError: read")
DEAD = Job("dead", "dead", enqueued_at_ms=100, died_at_ms=900, attempts=3, last_error="KeyError: 'a'")
PLAIN = Job("plain", queue="mail")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (JobQuery(), ["old", "dead", "plain"]),
        (JobQuery(states=["dead"]), ["dead"]),
        (JobQuery(states=[]), []),
        (JobQuery(queue="mail"), ["plain"]),
        (JobQuery(effect="send"), ["old"]),
        (JobQuery(queue="mail", effect="send"), []),
        (JobQuery(error="Timeout"), ["old"]),
        (JobQuery(error="timeout"), []),
        (JobQuery(min_attempts=1), ["old", "dead"]),
        (JobQuery(max_attempts=1), ["old", "plain"]),
        (JobQuery(min_attempts=2, max_attempts=3), ["dead"]),
        (JobQuery(until_ms=100), ["old"]),
        (JobQuery(until_ms=99), []),
        (JobQuery(since_ms=101), ["dead"]),
        (JobQuery(since_ms=100, until_ms=900), ["old", "dead"]),
        (JobQuery(error="Error", min_attempts=3), ["dead"]),
    ],
)
def test_a_job_passes_where_all_that_is_given_holds(query: JobQuery, ids: list[str]) -> None:
    assert [job.id for job in (OLD, DEAD, PLAIN) if query.matches(job)] == ids
