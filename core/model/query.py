"""Which jobs somebody wants to see, and which page of them: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import InvalidInput
from .checks import check_int, check_storable, check_strings
from .job import DEAD, STATES, Job, State


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Asks for a page of the jobs that match every given filter; ``None`` matches any job.

    Raises:
        InvalidInput: a field breaks its rule.
    """

    states: Sequence[State] | None = None
    queue: str | None = None
    effect: str | None = None
    error: str | None = None
    """The last error contains this, letter for letter."""
    min_attempts: int | None = None
    max_attempts: int | None = None
    since_ms: int | None = None
    """The job's age counts from this instant or later: from its death for a dead job, else from its enqueue."""
    until_ms: int | None = None
    after: str | None = None
    """The cursor of the page before; None asks for the first page."""
    limit: int = 1000

    def __post_init__(self) -> None:
        if self.states is not None:
            unknown = [state for state in check_strings(self.states, "states") if state not in STATES]
            if unknown:
                raise InvalidInput(f"the state {unknown[0]!r:.40} is unknown; there are {', '.join(STATES)}")
            object.__setattr__(self, "states", tuple(self.states))
        for what in ("queue", "effect", "error", "after"):
            if (string := getattr(self, what)) is not None:
                check_storable(string, what)
        for what in ("min_attempts", "max_attempts", "since_ms", "until_ms"):
            if (number := getattr(self, what)) is not None:
                check_int(number, what)
        check_int(self.limit, "limit", low=1)

    @property
    def asks_for_age(self) -> bool:
        """Whether the time of enqueue is needed to answer."""
        return self.since_ms is not None or self.until_ms is not None

    @property
    def searches(self) -> bool:
        """Whether an answer looks at each job, because no index holds what is asked for."""
        return self.asks_for_age or (self.error, self.min_attempts, self.max_attempts) != (None, None, None)

    def matches(self, job: Job) -> bool:
        """Whether the job is one of them, on whichever page. An age that is not known matches nothing."""
        if self.states is not None and job.state not in self.states:
            return False
        if self.queue not in (None, job.queue) or self.effect not in (None, job.effect):
            return False
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
    """The instant from which the age of a job counts; None where the ledger does not keep it."""
    return job.died_at_ms if job.state == DEAD else job.enqueued_at_ms


ALL_JOBS: Final = JobQuery()
