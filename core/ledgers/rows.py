"""A row of an SQL ledger as a job, and back: both engines store the same columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from ..model.job import RUNNING, Job, Stamps

JOB_COLUMNS: Final = 22
"""``id`` to ``died_at_ms``, in the order of the fields of ``Job``, then the four stamps in milliseconds."""

_FIELDS: Final = JOB_COLUMNS - 4
_NONE: Final = (None,) * 8


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row that starts with the columns of a job; what follows them is passed over."""
    return Job._make((*row[:_FIELDS], Stamps.from_ms(*row[_FIELDS:JOB_COLUMNS])))


def claimed_job(row: Sequence[Any], *, claimant: str, now_ms: int) -> Job:
    """The job of a row that ``pick`` returned: of a job that was just claimed, the rest is known, and not read.

    ``row`` has key, id, version, lease_until_ms, attempts, queue, effect, priority, enqueued_at_ms,
    first_claimed_at_ms, and as a JSON array, or None where there is none of it, run_at_ms, expires_at_ms,
    started_at_ms, last_error and the four stamps.
    """
    run_at_ms, expires_at_ms, started_at_ms, last_error, *stamps = (
        _NONE if row[10] is None else json.loads(row[10])
    )
    return Job._make(
        (
            row[1],
            RUNNING,
            *row[2:8],
            run_at_ms,
            expires_at_ms,
            row[8],
            claimant,
            now_ms,
            row[9],
            started_at_ms,
            None,  # completed_at_ms
            last_error,
            None,  # died_at_ms
            Stamps.from_ms(*stamps),
        )
    )


def stamps_ms(stamps: Stamps) -> tuple[int | None, int | None, int | None, int | None]:
    """The four columns of the stamps."""
    return (
        stamps.visibility_timeout_ms,
        stamps.max_attempts,
        stamps.backoff_base_ms,
        stamps.dead_letter_retention_ms,
    )
