"""What a worker tells of each attempt: the event, and the observers who are told."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from .inputs import NewJob
from .job import Job
from .receipts import Receipt


class Event(NamedTuple):
    """What became of one attempt: the claim's version, the job's state after it, and the error if it is not completed.

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
