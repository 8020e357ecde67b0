"""Which jobs a filter lets through."""

from __future__ import annotations

import pytest
from fencepost.core.model.job import Job
from fencepost.core.model.query import JobFilter

OLD = Job("old", enqueued_at_ms=100, attempts=1, last_error="TimeoutError: read")
DEAD = Job("dead", "dead", enqueued_at_ms=100, died_at_ms=900, attempts=3, last_error="KeyError: 'a'")
PLAIN = Job("plain")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (JobFilter(), ["old", "dead", "plain"]),
        (JobFilter(error="Timeout"), ["old"]),
        (JobFilter(error="timeout"), []),
        (JobFilter(min_attempts=1), ["old", "dead"]),
        (JobFilter(max_attempts=1), ["old", "plain"]),
        (JobFilter(min_attempts=2, max_attempts=3), ["dead"]),
        (JobFilter(until_ms=100), ["old"]),
        (JobFilter(until_ms=99), []),
        (JobFilter(since_ms=101), ["dead"]),
        (JobFilter(since_ms=100, until_ms=900), ["old", "dead"]),
        (JobFilter(error="Error", min_attempts=3), ["dead"]),
    ],
)
def test_a_job_passes_where_all_that_is_given_holds(where: JobFilter, ids: list[str]) -> None:
    assert [job.id for job in (OLD, DEAD, PLAIN) if where.matches(job)] == ids
