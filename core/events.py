"""What a worker tells of each attempt, and what it is told to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from .errors import InvalidInput
from .inputs import MAX_INT, NewJob, check_int, check_name, check_seconds
from .job import MAX_CLAIM, Job
from .policy import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS
from .receipts import Receipt

MAX_DELAY_MS = 60_000


class Event(NamedTuple):
    """One attempt: the claim's version, the state that the job was left in, and why if it is not completed.

    ``lost`` is no state of a job: the claim no longer held when the worker wanted to move it.
    """

    id: str
    version: int
    state: Literal["completed", "queued", "dead", "held", "lost"]
    reused_effect: bool = False
    error: str | None = None

    def document(self) -> dict[str, Any]:
        """The event as it is printed."""
        shown: dict[str, Any] = {
            "id": self.id,
            "version": self.version,
            "state": self.state,
            "reused_effect": self.reused_effect,
        }
        return shown if self.error is None else shown | {"error": self.error}


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works. ``max_jobs`` None: until it is stopped."""

    claimant: str
    lease_ms: int = DEFAULT_LEASE_MS
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_jobs: int | None = None
    """A bounded worker makes at most so many attempts, and stops when nothing is ready."""
    concurrency: int = 1
    queues: tuple[str, ...] | None = None
    """One claim per queue in turn; None serves all queues in one order."""
    timeout_s: float | None = None
    """An attempt that takes longer is given up: its lease lapses while the slot stays taken."""
    idle_exit_s: float | None = None
    """Stop after so long without a job."""
    grace_s: float = 30.0
    """How long running attempts may take to finish once the worker is to stop."""
    delay_ms: int = 0
    """A stall after each claim, without heartbeats: for showing stale workers."""
    now_ms: int | None = None
    """A fixed logical clock; None: the ledger's own."""
    sweep_every_s: float = 30.0
    schedules: bool = True

    def __post_init__(self) -> None:
        check_int(self.lease_ms, "lease_ms", low=1)
        check_int(self.max_attempts, "max_attempts", low=1)
        check_int(self.concurrency, "concurrency", low=1, high=1_000)
        check_int(self.delay_ms, "delay_ms", high=MAX_DELAY_MS)
        if self.max_jobs is not None:
            check_int(self.max_jobs, "max_jobs", low=1, high=MAX_CLAIM)
        if self.now_ms is not None:
            check_int(self.now_ms, "now_ms", high=MAX_INT)
        for queue in self.queues or ():
            check_name(queue, "queue")
        if self.queues is not None and not self.queues:
            raise InvalidInput("a worker needs at least one queue; leave queues out to serve all")
        for what in ("timeout_s", "idle_exit_s", "grace_s", "sweep_every_s"):
            check_seconds(getattr(self, what), what)
        if self.timeout_s == 0:
            raise InvalidInput("a time-out of 0 lets no attempt finish; leave it out for none")

    @property
    def bounded(self) -> bool:
        """Whether the worker ends by itself."""
        return self.max_jobs is not None


class Observers(Protocol):
    """Who is told what happens; implementations neither raise nor block for long."""

    def job_enqueued(self, job: NewJob, created: bool) -> None: ...  # noqa: D102
    def job_claimed(self, job: Job) -> None: ...  # noqa: D102
    def job_completed(self, job: Job, receipt: Receipt, reused: bool) -> None: ...  # noqa: D102
    def job_retried(self, job: Job, error: str, run_at_ms: int | None) -> None: ...  # noqa: D102
    def job_dead(self, job: Job, error: str) -> None: ...  # noqa: D102
    def job_held(self, job: Job, error: str) -> None: ...  # noqa: D102
    def job_lost(self, job: Job) -> None: ...  # noqa: D102
    def worker_started(self, claimant: str, store: str, effects: tuple[str, ...]) -> None: ...  # noqa: D102
    def worker_stopped(self, claimant: str, store: str, error: str | None) -> None: ...  # noqa: D102


class NoObservers:
    """Nobody is told."""

    def job_enqueued(self, job: NewJob, created: bool) -> None:
        """Pass by."""

    def job_claimed(self, job: Job) -> None:
        """Pass by."""

    def job_completed(self, job: Job, receipt: Receipt, reused: bool) -> None:
        """Pass by."""

    def job_retried(self, job: Job, error: str, run_at_ms: int | None) -> None:
        """Pass by."""

    def job_dead(self, job: Job, error: str) -> None:
        """Pass by."""

    def job_held(self, job: Job, error: str) -> None:
        """Pass by."""

    def job_lost(self, job: Job) -> None:
        """Pass by."""

    def worker_started(self, claimant: str, store: str, effects: tuple[str, ...]) -> None:
        """Pass by."""

    def worker_stopped(self, claimant: str, store: str, error: str | None) -> None:
        """Pass by."""
