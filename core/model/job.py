"""The job, its states and every move between them: docs/reference/contract/jobs.md §2 as pure functions.

No I/O and no clock: each move takes a job and the instant, and returns the job after it, or ``None`` where the
move is refused. The directory ledger runs on these functions; the SQL ledgers are tested against them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from ..errors import InvalidInput
from .checks import MAX_SPAN_MS, check_int, check_storable, check_string, check_strings

State = Literal["queued", "running", "completed", "dead", "held"]
Decision = Literal["applied", "retry", "fail"]

QUEUED: Final = "queued"
RUNNING: Final = "running"
COMPLETED: Final = "completed"
DEAD: Final = "dead"
HELD: Final = "held"
STATES: Final[tuple[State, ...]] = (QUEUED, RUNNING, COMPLETED, DEAD, HELD)

DEFAULT_QUEUE: Final = "default"
DEFAULT_EFFECT: Final = "count"

CANCELLED: Final = "cancelled"
EXPIRED: Final = "expired"
ATTEMPT_LOST: Final = "attempt lost after its start"
EXHAUSTED: Final = "max attempts exceeded"
FAILED_BY_OPERATOR: Final = "resolved as failed"

MAX_CLAIM: Final = 10_000
"""How many jobs one claim takes at most."""

REAP_LIMIT: Final = 1_000
"""How many jobs one claim reaps at most, so that a backlog of lapsed jobs never makes one claim long."""


def whole_ms(seconds: float) -> int:
    """Seconds as whole milliseconds, rounded up; decimal, so that 0.07 s is 70 ms and not 71."""
    from decimal import Decimal

    return math.ceil(Decimal(repr(seconds)) * 1_000)


def _stamp_ms(seconds: float | None) -> int | None:
    return None if seconds is None else whole_ms(seconds)


def _stamp_s(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000


@dataclass(frozen=True, slots=True)
class Stamps:
    """Settings that a job carries from its enqueue on; where one is None, the claiming worker's counts."""

    visibility_timeout_s: float | None = None
    """Length of the lease of each claim."""
    max_attempts: int | None = None
    backoff_base_s: float | None = None
    dead_letter_retention_s: float | None = None
    """How long the dead job is kept; None keeps it for ever."""

    @property
    def visibility_timeout_ms(self) -> int | None:
        """The lease in whole milliseconds."""
        return _stamp_ms(self.visibility_timeout_s)

    @property
    def backoff_base_ms(self) -> int | None:
        """The backoff base in whole milliseconds."""
        return _stamp_ms(self.backoff_base_s)

    @property
    def dead_letter_retention_ms(self) -> int | None:
        """The retention in whole milliseconds."""
        return _stamp_ms(self.dead_letter_retention_s)

    def whole(self) -> Stamps:
        """The stamps as ledgers keep them: whole milliseconds, rounded up."""
        if self is NO_STAMPS:
            return self
        return Stamps.from_ms(
            self.visibility_timeout_ms, self.max_attempts, self.backoff_base_ms, self.dead_letter_retention_ms
        )

    @classmethod
    def from_ms(
        cls,
        visibility_timeout_ms: int | None,
        max_attempts: int | None,
        backoff_base_ms: int | None,
        dead_letter_retention_ms: int | None,
    ) -> Stamps:
        """The stamps as ledgers store them, in whole milliseconds."""
        if visibility_timeout_ms is max_attempts is backoff_base_ms is dead_letter_retention_ms is None:
            return NO_STAMPS
        return cls(
            _stamp_s(visibility_timeout_ms),
            max_attempts,
            _stamp_s(backoff_base_ms),
            _stamp_s(dead_letter_retention_ms),
        )


NO_STAMPS: Final = Stamps()


class Job(NamedTuple):
    """One unit of work as a ledger sees it; what does not apply, or is not kept by that ledger, is None.

    A named tuple, because a claim makes one of every row that it takes: a frozen dataclass of as many fields takes
    six times as long to make, and as to change.
    """

    id: str
    state: State = QUEUED
    version: int = 0
    lease_until_ms: int = 0
    attempts: int = 0
    queue: str = DEFAULT_QUEUE
    effect: str = DEFAULT_EFFECT
    priority: int = 0
    run_at_ms: int | None = None
    expires_at_ms: int | None = None
    enqueued_at_ms: int | None = None
    claimant: str | None = None
    claimed_at_ms: int | None = None
    first_claimed_at_ms: int | None = None
    started_at_ms: int | None = None
    completed_at_ms: int | None = None
    last_error: str | None = None
    died_at_ms: int | None = None
    stamps: Stamps = NO_STAMPS


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a claim asks for, and in whose name; ``None`` for queues or effects means all of them.

    Raises:
        InvalidInput: a field breaks its rule.
    """

    claimant: str
    lease_ms: int
    max_attempts: int
    limit: int = 1
    queues: Sequence[str] | None = None
    effects: Sequence[str] | None = None
    exhausted_error: str = EXHAUSTED
    expired_error: str = EXPIRED
    lost_error: str = ATTEMPT_LOST

    def __post_init__(self) -> None:
        check_storable(self.claimant, "claimant")
        check_int(self.lease_ms, "lease_ms", low=1, high=MAX_SPAN_MS)
        check_int(self.max_attempts, "max_attempts", low=1)
        check_int(self.limit, "limit", low=1, high=MAX_CLAIM)
        for what in ("queues", "effects"):
            if (names := getattr(self, what)) is not None:
                object.__setattr__(self, what, check_strings(names, what))
        for what in ("exhausted_error", "expired_error", "lost_error"):
            check_string(getattr(self, what), what)

    def serves(self, job: Job) -> bool:
        """Whether the claim covers the job's queue and effect."""
        return (self.queues is None or job.queue in self.queues) and (
            self.effects is None or job.effect in self.effects
        )


# -- What holds of a job at an instant ---------------------------------------------------------------------


def lease_valid(job: Job, version: int, now_ms: int) -> bool:
    """Whether the owner may move the job: it is running, the fence is the same, and the lease has not ended."""
    return job.state == RUNNING and job.version == version and now_ms < job.lease_until_ms


def lapsed(job: Job, now_ms: int) -> bool:
    """The lease has ended: the exact complement of what ``lease_valid`` asks of the time."""
    return job.state == RUNNING and now_ms >= job.lease_until_ms


def expired(job: Job, now_ms: int) -> bool:
    """The job's expiry has passed while it could still move; a live lease does not protect it."""
    return job.state in (QUEUED, RUNNING) and job.expires_at_ms is not None and job.expires_at_ms <= now_ms


def limit_of(job: Job, max_attempts: int) -> int:
    """The job's own limit of attempts where it has one, else the worker's."""
    return max_attempts if job.stamps.max_attempts is None else job.stamps.max_attempts


def lease_of(job: Job, lease_ms: int) -> int:
    """The length of the job's own lease where it has one, else the worker's."""
    own_ms = job.stamps.visibility_timeout_ms
    return lease_ms if own_ms is None else own_ms


def ready(job: Job, now_ms: int, max_attempts: int) -> bool:
    """Whether a claim may pick the job now."""
    return (
        job.state == QUEUED
        and (job.run_at_ms is None or job.run_at_ms <= now_ms)
        and job.attempts < limit_of(job, max_attempts)
    )


def ready_ms(job: Job) -> int:
    """The instant that orders ready jobs of one priority: run_at, else the enqueue (0 where it is not kept)."""
    return job.run_at_ms if job.run_at_ms is not None else job.enqueued_at_ms or 0


def claim_order(job: Job) -> tuple[int, int]:
    """Sort key of claims; jobs that are equal in it go by order of enqueue."""
    return (-job.priority, ready_ms(job))


# -- The moves of an owner ----------------------------------------------------------------------------------


def claim(job: Job, request: ClaimRequest, *, now_ms: int) -> Job | None:
    """Take a ready job: a new fence, one more attempt, a lease from now."""
    if not ready(job, now_ms, request.max_attempts):
        return None
    return job._replace(
        state=RUNNING,
        version=job.version + 1,
        attempts=job.attempts + 1,
        lease_until_ms=now_ms + lease_of(job, request.lease_ms),
        claimant=request.claimant,
        claimed_at_ms=now_ms,
        first_claimed_at_ms=now_ms if job.first_claimed_at_ms is None else job.first_claimed_at_ms,
    )


def begin(job: Job, version: int, *, now_ms: int) -> Job | None:
    """The attempt of a ``once`` effect starts: from here on a lost lease means that the outcome is unknown."""
    return job._replace(started_at_ms=now_ms) if lease_valid(job, version, now_ms) else None


def heartbeat(job: Job, version: int, *, now_ms: int, extend_ms: int) -> Job | None:
    """Move the end of the lease to ``extend_ms`` from now; never to an earlier instant."""
    if not lease_valid(job, version, now_ms):
        return None
    return job._replace(lease_until_ms=max(job.lease_until_ms, now_ms + extend_ms))


def complete(job: Job, version: int, *, now_ms: int) -> Job | None:
    """The work is done. Whether there is a receipt is not looked at: the worker's order guarantees it."""
    if not lease_valid(job, version, now_ms):
        return None
    return job._replace(state=COMPLETED, lease_until_ms=0, completed_at_ms=now_ms)


def retry(
    job: Job,
    version: int,
    *,
    now_ms: int,
    run_at_ms: int | None,
    error: str | None,
    max_attempts: int,
    exhausted_error: str = EXHAUSTED,
) -> Job | None:
    """The attempt failed, and nothing was done: back to the queue for ``run_at_ms``, or dead after the last one."""
    if not lease_valid(job, version, now_ms):
        return None
    if job.attempts >= limit_of(job, max_attempts):
        return _not_done(_dead(job, now_ms=now_ms, error=exhausted_error if error is None else error))
    return _left(job, QUEUED)._replace(run_at_ms=run_at_ms, last_error=error, started_at_ms=None)


def fail(job: Job, version: int, *, now_ms: int, error: str) -> Job | None:
    """Nothing was done, and no further attempt can help: dead at once."""
    return _not_done(_dead(job, now_ms=now_ms, error=error)) if lease_valid(job, version, now_ms) else None


def release(job: Job, version: int, *, now_ms: int) -> Job | None:
    """Hand back a job that was not started; its attempt is not counted."""
    if not lease_valid(job, version, now_ms) or job.started_at_ms is not None:
        return None
    return _left(job, QUEUED)._replace(attempts=job.attempts - 1)


def hold(job: Job, version: int, *, now_ms: int, error: str) -> Job | None:
    """Park the job for an operator: its outcome is unknown, or a promise is broken."""
    return _left(job, HELD)._replace(last_error=error) if lease_valid(job, version, now_ms) else None


# -- What time does: the reaping of a claim, and the sweep --------------------------------------------------


def expire(job: Job, *, now_ms: int, error: str = EXPIRED) -> Job | None:
    """Bury a job whose expiry has passed, even under a live lease."""
    return _dead(job, now_ms=now_ms, error=error) if expired(job, now_ms) else None


def reap(job: Job, request: ClaimRequest, *, now_ms: int, has_receipt: bool) -> Job | None:
    """What a claim does first with a job whose time has passed: expire, lost, exhausted, reclaim.

    The first that fits is done. None: nothing has passed. ``has_receipt`` is asked of a job that had started: with a
    receipt the attempt was not lost, and the claim that completes the job by it is no attempt more.
    """
    if expired(job, now_ms):
        return _dead(job, now_ms=now_ms, error=request.expired_error)
    over = lapsed(job, now_ms)
    if over and job.started_at_ms is not None:
        if has_receipt:
            return _left(job, QUEUED)._replace(run_at_ms=None, attempts=job.attempts - 1, started_at_ms=None)
        return _left(job, HELD)._replace(last_error=request.lost_error)
    if (over or job.state == QUEUED) and job.attempts >= limit_of(job, request.max_attempts):
        return _dead(job, now_ms=now_ms, error=request.exhausted_error)
    if over:
        return _left(job, QUEUED)._replace(run_at_ms=None)
    return None


def reap_due_ms(job: Job, now_ms: int) -> int:
    """When the job became due for reaping; used-up attempts of a queued job count as always due."""
    if expired(job, now_ms):
        return job.expires_at_ms or 0
    return job.lease_until_ms


def purgeable(job: Job, now_ms: int) -> bool:
    """The dead job has been kept for as long as its stamp asks."""
    retention_ms = job.stamps.dead_letter_retention_ms
    return (
        job.state == DEAD
        and retention_ms is not None
        and job.died_at_ms is not None
        and job.died_at_ms + retention_ms <= now_ms
    )


def next_due_ms(job: Job) -> int | None:
    """When the job next needs a claim: its run_at, the end of its lease or its expiry; None if never.

    An instant that has already passed is reported too; 0 for a job that is ready whatever the clock says.
    """
    if job.state == RUNNING:
        due_ms = job.lease_until_ms
    elif job.state == QUEUED:
        due_ms = job.run_at_ms or 0
    else:
        return None
    return due_ms if job.expires_at_ms is None else min(due_ms, job.expires_at_ms)


# -- What an operator does ---------------------------------------------------------------------------------


def cancel(job: Job, *, now_ms: int, error: str = CANCELLED) -> Job | None:
    """Bury a job that is not finished; its owner's later moves are refused."""
    return _dead(job, now_ms=now_ms, error=error) if job.state in (QUEUED, RUNNING) else None


def reschedule(job: Job, *, run_at_ms: int | None, priority: int | None) -> Job | None:
    """Give a queued job another run_at, another priority, or both; what is None stays as it is."""
    if job.state != QUEUED:
        return None
    return job._replace(
        run_at_ms=job.run_at_ms if run_at_ms is None else run_at_ms,
        priority=job.priority if priority is None else priority,
    )


def redrive(job: Job, *, now_ms: int, has_receipt: bool, error: str = ATTEMPT_LOST) -> Job | None:
    """Give a dead job a new life; one that had started and left no receipt is held: nobody knows."""
    if job.state != DEAD:
        return None
    passed = job.expires_at_ms is not None and job.expires_at_ms <= now_ms
    alive = _left(job, QUEUED)._replace(
        attempts=0,
        run_at_ms=None,
        last_error=None,
        died_at_ms=None,
        expires_at_ms=None if passed else job.expires_at_ms,
    )
    if job.started_at_ms is not None and not has_receipt:
        return alive._replace(state=HELD, last_error=error)
    return alive._replace(started_at_ms=None)


def resolve(job: Job, *, now_ms: int, decision: Decision, error: str = FAILED_BY_OPERATOR) -> Job | None:
    """Decide a held job: it was applied, it is to be tried again, or it has failed.

    The last error of a failed one begins with ``error``; what the job was held for stays to be read behind it.

    Raises:
        InvalidInput: the decision is none of these.
    """
    if decision not in get_args(Decision):
        raise InvalidInput(f"decision {decision!r:.40}: must be applied, retry or fail")
    if job.state != HELD:
        return None
    if decision == "applied":
        return _left(job, COMPLETED)._replace(completed_at_ms=now_ms)
    if decision == "retry":
        return _left(job, QUEUED)._replace(attempts=0, run_at_ms=None, started_at_ms=None)
    held_for = "" if job.last_error is None else f"; it was held for: {job.last_error}"
    return _dead(job, now_ms=now_ms, error=error + held_for)


# -- Shared by the moves -----------------------------------------------------------------------------------


def _left(job: Job, state: State) -> Job:
    """The job in another state under a new fence, so that whoever held it is refused."""
    return job._replace(state=state, version=job.version + 1, lease_until_ms=0)


def _not_done(job: Job) -> Job:
    """The job without its start: its owner said that nothing was done, so that a redrive may try it again."""
    return job._replace(started_at_ms=None)


def _dead(job: Job, *, now_ms: int, error: str) -> Job:
    return _left(job, DEAD)._replace(last_error=error, died_at_ms=now_ms)
