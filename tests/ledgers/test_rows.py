"""A row of an SQL ledger becomes the same job as any other way of making one."""

from __future__ import annotations

import pytest
from fencepost.core.ledgers.rows import JOB_COLUMNS, job_of, stamps_ms
from fencepost.core.model.job import NO_STAMPS, Job, Stamps

FULL = Job(
    "a", "held", 7, 1, 2, "mail", "send", -3, 10, 11, 12, "me", 13, 14, 15, 16, "no", 17, Stamps(1.5, 2, 0.25, 0.0)
)  # fmt: skip
BARE = FULL._replace(
    **dict.fromkeys(("run_at_ms", "expires_at_ms", "claimant", "last_error")), stamps=NO_STAMPS
)


def row_of(job: Job) -> tuple[object, ...]:
    return (*job[:-1], *stamps_ms(job.stamps))


@pytest.mark.parametrize("job", [FULL, BARE], ids=["every column", "empty columns"])
@pytest.mark.parametrize("more", [(), (4711,)], ids=["alone", "with a key behind"])
def test_a_row_is_the_job_that_it_was_made_of(job: Job, more: tuple[int, ...]) -> None:
    made = job_of((*row_of(job), *more))
    assert made == job
    assert hash(made) == hash(job)
    assert type(made) is Job


def test_the_columns_are_as_many_as_the_fields_and_the_stamps() -> None:
    assert len(row_of(FULL)) == JOB_COLUMNS
