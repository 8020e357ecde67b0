"""Which jobs a person wants to see, beyond their state, queue and effect: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .job import DEAD, Job


@dataclass(frozen=True, slots=True)
class JobFilter:
    """All that is given must hold."""

    error: str | None = None
    """The last error contains this, letter for letter."""
    min_attempts: int | None = None
    max_attempts: int | None = None
    since_ms: int | None = None
    """Born at this instant or later: a dead job is as old as its death, any other as its enqueue."""
    until_ms: int | None = None

    @property
    def asks_for_age(self) -> bool:
        """Whether the time of enqueue is needed to answer."""
        return self.since_ms is not None or self.until_ms is not None

    def matches(self, job: Job) -> bool:
        """Whether the job is one of them. An age that is not known matches nothing."""
        if self.error is not None and self.error not in (job.last_error or ""):
            return False
        if self.min_attempts is not None and job.attempts < self.min_attempts:
            return False
        if self.max_attempts is not None and job.attempts > self.max_attempts:
            return False
        if not self.asks_for_age:
            return True
        from_ms = age_from_ms(job)
        return (
            from_ms is not None
            and (self.since_ms is None or from_ms >= self.since_ms)
            and (self.until_ms is None or from_ms <= self.until_ms)
        )


def age_from_ms(job: Job) -> int | None:
    """From when the age of a job counts; None where the ledger does not keep it."""
    return job.died_at_ms if job.state == DEAD else job.enqueued_at_ms


ALL_JOBS: Final = JobFilter()
