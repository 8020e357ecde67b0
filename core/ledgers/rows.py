"""A row of an SQL ledger as a job, and back: both engines store the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..job import NO_STAMPS, RUNNING, Job, Stamps

JOB_COLUMNS: Final = 22
"""``id`` to ``died_at_ms``, in the order of the fields of ``Job``, then the four stamps in milliseconds."""

_FIELDS: Final = JOB_COLUMNS - 4


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row that starts with the columns of a job; what follows them is passed over."""
    return Job._make((*row[:_FIELDS], _stamps_of(*row[_FIELDS:JOB_COLUMNS])))


def claimed_job(row: Sequence[Any], *, claimant: str, now_ms: int) -> Job:
    """The job of a row that ``pick`` returned: of a job that was just claimed, the rest is known, and not read.

    ``row`` has key, id, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, first_claimed_at_ms, started_at_ms, last_error and the four stamps.
    """
    return Job._make(
        (
            row[1],
            RUNNING,
            *row[2:11],
            claimant,
            now_ms,
            row[11],
            row[12],
            None,  # completed_at_ms
            row[13],
            None,  # died_at_ms
            _stamps_of(*row[14:18]),
        )
    )


def _stamps_of(
    lease_ms: int | None, max_attempts: int | None, backoff_ms: int | None, retention_ms: int | None
) -> Stamps:
    if lease_ms is max_attempts is backoff_ms is retention_ms is None:
        return NO_STAMPS
    return Stamps.from_ms(lease_ms, max_attempts, backoff_ms, retention_ms)


def stamps_ms(stamps: Stamps) -> tuple[int | None, int | None, int | None, int | None]:
    """The four columns of the stamps."""
    return (
        stamps.visibility_timeout_ms,
        stamps.max_attempts,
        stamps.backoff_base_ms,
        stamps.dead_letter_retention_ms,
    )
