"""How much a worker claims ahead: what it is likely to finish soon, and well within the lease."""

from __future__ import annotations

from typing import Final

from .options import WorkerOptions

MAX_PREFETCH: Final = 2_000
PREFETCH_S: Final = 0.25
"""A following worker claims ahead what it is likely to finish within this, and within an eighth of the lease."""
MIN_FLUSH_S: Final = 0.01
MAX_FLUSH_S: Final = 0.1
"""How long a finished attempt waits for others to be settled with: twice what the last turn took, within these.
So turns never take more than a third of a busy worker's time, however slow a commit is."""


MAX_OUTAGE_NAP_S: Final = 5.0


def outage_nap_s(failures: int) -> float:
    """How long to leave a ledger alone that could not be used this many times in a row."""
    return min(MAX_OUTAGE_NAP_S, 0.1 * 2.0 ** min(failures, 10))


class Pace:
    """Watches how long attempts and turns take, and says how many jobs to claim and when to settle.

    A bounded worker claims only what a slot can start at once, so that what it leaves behind is what it has
    made. So does one that stalls or crashes on purpose.
    """

    def __init__(self, options: WorkerOptions, *, one_at_a_time: bool) -> None:
        self._slots = 1 if one_at_a_time else options.concurrency
        self._ahead = not (options.bounded or one_at_a_time or options.delay_ms)
        self._horizon_s = min(PREFETCH_S, options.lease_ms / 8_000)
        self._mean_s: float | None = None
        self._target = self._slots
        self.flush_s = MIN_FLUSH_S
        """How long a finished attempt waits for others to be settled with."""

    def exchanged(self, duration_s: float) -> None:
        """Learn from an exchange with the ledger that has ended."""
        self.flush_s = min(max(MIN_FLUSH_S, 2 * duration_s), MAX_FLUSH_S)

    def took(self, durations_s: list[float]) -> None:
        """Learn from attempts that have finished."""
        if not durations_s or not self._ahead:
            return
        mean_s = sum(durations_s) / len(durations_s)
        self._mean_s = mean_s if self._mean_s is None else 0.7 * self._mean_s + 0.3 * mean_s
        likely = int(self._slots * self._horizon_s / max(self._mean_s, 1e-6))
        # Doubling at most: one quick job does not promise a thousand.
        self._target = max(self._slots, min(likely, 2 * self._target, MAX_PREFETCH))

    @property
    def low_mark(self) -> int:
        """How few claimed jobs may be left to start before it is time to claim more."""
        return self._target // 2 if self._ahead else 0

    def low(self, waiting: int) -> bool:
        """Whether it is time to claim more, with this many claimed jobs that have not been started."""
        return not self._ahead or waiting <= self.low_mark

    def room(self, *, waiting: int, outstanding: int) -> int:
        """How many jobs to claim now; ``waiting`` of ``outstanding`` claimed ones have not been started."""
        return self._target - waiting if self._ahead else self._slots - outstanding
