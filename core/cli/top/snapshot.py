"""What ``top`` shows: snapshots of the queues and their rates, of running jobs and of the latest deaths."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...ledgers.protocol import Ledger
from ...model.fields import whole
from ...model.job import RUNNING, Job
from ...model.query import JobQuery
from ...model.queue_counts import QueueCounts, with_paused

MAX_ROWS: Final = 100
SAMPLES: Final = 60
SHARE: Final = 10
"""Counting takes at most one tenth of the time: on a large ledger it is done less often."""
BARS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Line:
    """One queue, and how fast its jobs are completed."""

    counts: QueueCounts
    paused: bool
    per_s: float | None
    """Completions a second between the last two counts; None after the first one."""
    series: tuple[float, ...]
    """The rates between earlier counts, the latest last."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A ledger at one moment."""

    location: str
    now_ms: int
    queues: list[Line]
    counted_ago_s: float
    running: list[Job]
    deaths: list[Job]
    fault: str | None = None
    """Why the latest sample failed; the other fields are from the one before."""

    @property
    def per_s(self) -> float | None:
        """Completions a second in all queues."""
        rates = [line.per_s for line in self.queues if line.per_s is not None]
        return sum(rates) if rates else None


@dataclass
class Rates:
    """Completions a second, from the growth of the counts of completed jobs."""

    last_s: float | None = None
    _last: dict[str, int] = field(default_factory=dict)
    _series: dict[str, deque[float]] = field(default_factory=dict)

    def add(self, at_s: float, counts: Sequence[QueueCounts]) -> None:
        """Take the counts of one more moment into account."""
        if self.last_s is not None and at_s > self.last_s:
            for queue in counts:
                grown = queue.completed - self._last.get(queue.queue, 0)
                series = self._series.setdefault(queue.queue, deque(maxlen=SAMPLES))
                series.append(max(0, grown) / (at_s - self.last_s))
        self._last = {queue.queue: queue.completed for queue in counts}
        self.last_s = at_s

    def of(self, queue: str) -> tuple[float, ...]:
        """Return the rates of the queue, the latest last."""
        return tuple(self._series.get(queue, ()))


class Sampler:
    """Takes snapshots of a ledger."""

    def __init__(
        self, ledger: Ledger, *, now_ms: int | None, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._now_ms = now_ms
        self._clock_s = clock_s
        self._rates = Rates()
        self._counts: list[QueueCounts] = []
        self._paused: list[str] = []
        self._counted_s = 0.0
        self._count_again_s = float("-inf")

    def sample(self) -> Snapshot:
        """Take a snapshot of the ledger now.

        Raises:
            LedgerError: it cannot be read.
        """
        ledger = self._ledger
        now_ms = ledger.now_ms() if self._now_ms is None else self._now_ms
        if self._clock_s() >= self._count_again_s:
            self._count(now_ms)
        lines = []
        for counts in self._counts:
            series = self._rates.of(counts.queue)
            lines.append(Line(counts, counts.queue in self._paused, series[-1] if series else None, series))
        return Snapshot(
            ledger.location,
            now_ms,
            lines,
            self._clock_s() - self._counted_s,
            ledger.jobs(JobQuery(states=[RUNNING], limit=MAX_ROWS)).jobs,
            ledger.latest_deaths(limit=MAX_ROWS),
        )

    def _count(self, now_ms: int) -> None:
        started_s = self._clock_s()
        counts = self._ledger.queue_counts(since_ms=now_ms, now_ms=now_ms)
        self._paused = self._ledger.paused() if self._ledger.capabilities.has_schedules else []
        self._counts = with_paused(counts, self._paused)
        self._counted_s = self._clock_s()
        self._rates.add(started_s, self._counts)
        self._count_again_s = self._counted_s + (SHARE - 1) * (self._counted_s - started_s)


def sparkline(series: Sequence[float], width: int) -> str:
    """Draw the latest values as bars, the tallest for the largest; empty until there are two."""
    shown = series[-width:]
    if len(shown) < 2:
        return ""
    top = max(shown)
    if top == 0:
        return BARS[0] * len(shown)
    return "".join(BARS[min(len(BARS) - 1, int(value / top * len(BARS)))] for value in shown)


def document(snapshot: Snapshot) -> dict[str, Any]:
    """Make the document of a snapshot."""
    return {
        "schema_version": 1,
        "store": snapshot.location,
        "now_ms": snapshot.now_ms,
        "queues": [
            {"queue": line.counts.queue, "paused": line.paused, "counts": line.counts.by_state}
            for line in snapshot.queues
        ],
        "running": [whole(job) for job in snapshot.running],
        "latest_deaths": [whole(job) for job in snapshot.deaths],
    }
