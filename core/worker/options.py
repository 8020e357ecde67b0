"""How a worker is to work: the options of one worker, checked when they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..errors import InvalidInput
from ..model.checks import MAX_INT, MAX_SPAN_MS, check_int
from ..model.inputs import check_name, check_seconds
from ..model.job import MAX_CLAIM
from ..model.policy import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS

MAX_DELAY_MS: Final = 60_000
DEFAULT_GRACE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works. ``max_jobs`` None: until it is stopped."""

    claimant: str
    lease_ms: int = DEFAULT_LEASE_MS
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_jobs: int | None = None
    """A bounded worker makes at most this many attempts, and stops when nothing is ready."""
    concurrency: int = 1
    queues: tuple[str, ...] | None = None
    """One claim per queue in turn; None serves all queues in one order."""
    timeout_s: float | None = None
    """An attempt that takes longer is given up: its lease lapses while the slot stays taken."""
    idle_exit_s: float | None = None
    """Stop after so long without a job."""
    grace_s: float = DEFAULT_GRACE_S
    """How long running attempts may take to finish once the worker is to stop."""
    delay_ms: int = 0
    """A stall after each claim, without heartbeats: for showing stale workers."""
    now_ms: int | None = None
    """A fixed logical clock; None: the ledger's own."""
    sweep_every_s: float = 30.0
    schedules: bool = True

    def __post_init__(self) -> None:
        check_int(self.lease_ms, "lease_ms", low=1, high=MAX_SPAN_MS)
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

    @property
    def inline(self) -> bool:
        """Whether the thread that runs the worker makes the attempts itself: bounded, and one at a time."""
        return self.bounded and self.concurrency == 1
