"""A job as the fields that people read: the names are those of ``jobs.json``, on every ledger."""

from __future__ import annotations

from typing import Any

from .job import (
    DEAD,
    DEFAULT_EFFECT,
    DEFAULT_QUEUE,
    HELD,
    Job,
)


def five(job: Job) -> dict[str, Any]:
    """What every job has."""
    return {
        "ID": job.id,
        "State": job.state,
        "Version": job.version,
        "LeaseUntil": job.lease_until_ms,
        "Attempts": job.attempts,
    }


def options(job: Job) -> dict[str, Any]:
    """The options that are not the default; times and spans in milliseconds."""
    found: dict[str, Any] = {
        "Queue": None if job.queue == DEFAULT_QUEUE else job.queue,
        "Effect": None if job.effect == DEFAULT_EFFECT else job.effect,
        "Priority": job.priority or None,
        "RunAt": job.run_at_ms,
        "ExpiresAt": job.expires_at_ms,
        "VisibilityTimeout": job.stamps.visibility_timeout_ms,
        "MaxAttempts": job.stamps.max_attempts,
        "BackoffBase": job.stamps.backoff_base_ms,
        "DeadLetterRetention": job.stamps.dead_letter_retention_ms,
    }
    return given(found)


def shown(job: Job) -> dict[str, Any]:
    """The job as ``status`` shows it: why it is dead or held, too."""
    row = five(job) | options(job)
    if job.state in (DEAD, HELD):
        row |= given({"LastError": job.last_error, "DiedAt": job.died_at_ms})
    return row


def whole(job: Job) -> dict[str, Any]:
    """All that the ledger keeps of the job and that has a value."""
    details: dict[str, Any] = {
        "LastError": job.last_error,
        "DiedAt": job.died_at_ms,
        "EnqueuedAt": job.enqueued_at_ms,
        "Claimant": job.claimant,
        "ClaimedAt": job.claimed_at_ms,
        "FirstClaimedAt": job.first_claimed_at_ms,
        "StartedAt": job.started_at_ms,
        "CompletedAt": job.completed_at_ms,
    }
    return five(job) | {"Queue": job.queue, "Effect": job.effect} | options(job) | given(details)


def given(found: dict[str, Any]) -> dict[str, Any]:
    """The entries that have a value."""
    return {name: value for name, value in found.items() if value is not None}
