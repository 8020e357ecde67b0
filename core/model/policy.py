"""Policy above the ledgers: when a failed job is tried again, and how relative times become instants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

from .inputs import NewJob
from .job import Stamps, whole_ms

DEFAULT_LEASE_MS: Final = 30_000
DEFAULT_MAX_ATTEMPTS: Final = 3
DEFAULT_BACKOFF_BASE_MS: Final = 1_000
MAX_BACKOFF_MS: Final = 3_600_000

Uniform = Callable[[float, float], float]
"""``random.uniform``, or a stand-in for it."""


def backoff_ms(attempts: int, base_ms: int | None, uniform: Uniform) -> int:
    """How long to wait after the ``attempts``-th attempt failed.

    Full jitter between 0 and base × 2^(attempts−1), at most an hour: jobs that failed together do not come back
    together (AWS Architecture Blog, "Exponential Backoff and Jitter", 2015).
    """
    base_ms = DEFAULT_BACKOFF_BASE_MS if base_ms is None else base_ms
    doublings = min(attempts - 1, MAX_BACKOFF_MS.bit_length())
    return round(uniform(0, min(MAX_BACKOFF_MS, base_ms << doublings)))


def at(job: NewJob, now_ms: int, delay_s: float | None, expires_in_s: float | None) -> NewJob:
    """Return the job with its relative times as instants; each wins over the job's own instant."""
    if delay_s is not None:
        job = replace(job, run_at_ms=now_ms + whole_ms(delay_s))
    if expires_in_s is not None:
        job = replace(job, expires_at_ms=now_ms + whole_ms(expires_in_s))
    return job


def with_defaults(stamps: Stamps, defaults: Stamps) -> Stamps:
    """The call's stamps, and the queue's where the call has none."""
    return Stamps(
        **{
            field.name: default if (mine := getattr(stamps, field.name)) is None else mine
            for field in fields(Stamps)
            for default in (getattr(defaults, field.name),)
        }
    )
