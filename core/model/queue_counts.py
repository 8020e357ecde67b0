"""How the queues stand, each on one line: the value, and the pure rule that makes it from jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .job import (
    COMPLETED,
    DEAD,
    HELD,
    QUEUED,
    RUNNING,
    Job,
    State,
)


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """One queue that has jobs."""

    queue: str
    ready: int = 0
    """Queued, and due."""
    delayed: int = 0
    """Queued, with a run_at that has not come."""
    running: int = 0
    completed: int = 0
    dead: int = 0
    held: int = 0
    oldest_ready_ms: int | None = None
    """Since when the job that has waited longest has been ready; None where that is not kept, or none is ready."""
    completed_since: int | None = None
    """How many were completed at or after the instant that was asked for; None where that is not kept."""
    died_since: int = 0

    @property
    def by_state(self) -> dict[State, int]:
        """All five states, as ``counts`` says them."""
        return {
            QUEUED: self.ready + self.delayed,
            RUNNING: self.running,
            COMPLETED: self.completed,
            DEAD: self.dead,
            HELD: self.held,
        }


def queue_counts(
    jobs: Iterable[Job], *, now_ms: int, since_ms: int, keeps_completion: bool
) -> list[QueueCounts]:
    """The queues of these jobs, by name."""
    queues: dict[str, list[Job]] = {}
    for job in jobs:
        queues.setdefault(job.queue, []).append(job)
    return [
        _counts(queue, queues[queue], now_ms, since_ms, keeps_completion=keeps_completion)
        for queue in sorted(queues)
    ]


def _counts(
    queue: str, jobs: list[Job], now_ms: int, since_ms: int, *, keeps_completion: bool
) -> QueueCounts:
    queued = [job for job in jobs if job.state == QUEUED]
    ready = [job for job in queued if job.run_at_ms is None or job.run_at_ms <= now_ms]
    waiting = [job.enqueued_at_ms if job.run_at_ms is None else job.run_at_ms for job in ready]
    states = [job.state for job in jobs]
    return QueueCounts(
        queue,
        ready=len(ready),
        delayed=len(queued) - len(ready),
        running=states.count(RUNNING),
        completed=states.count(COMPLETED),
        dead=states.count(DEAD),
        held=states.count(HELD),
        oldest_ready_ms=min((at_ms for at_ms in waiting if at_ms is not None), default=None),
        completed_since=sum((job.completed_at_ms or -1) >= since_ms for job in jobs if job.state == COMPLETED)
        if keeps_completion
        else None,
        died_since=sum((job.died_at_ms or -1) >= since_ms for job in jobs if job.state == DEAD),
    )


def latest_deaths(jobs: Iterable[Job], limit: int) -> list[Job]:
    """The dead among these jobs, the latest first; those that died at one instant in order of enqueue."""
    dead = [job for job in jobs if job.state == DEAD]
    return sorted(dead, key=lambda job: job.died_at_ms or 0, reverse=True)[:limit]


def with_paused(counts: list[QueueCounts], paused: list[str]) -> list[QueueCounts]:
    """Also the queues that are paused and have no jobs."""
    known = {queue.queue for queue in counts}
    empty = [QueueCounts(name, completed_since=0) for name in paused if name not in known]
    return sorted([*counts, *empty], key=lambda queue: queue.queue)


def per_minute(count: int | None, window_ms: int) -> float | None:
    """A rate from a count; None where it is not kept."""
    return None if count is None else round(count * 60_000 / window_ms, 2)
