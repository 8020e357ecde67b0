"""Which claims a worker asks for: within its bound, and from its queues in turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model.job import ClaimRequest
from .options import WorkerOptions


class Claims:
    """Makes the claim requests of one worker, and counts what they brought. For the dispatcher's thread alone."""

    def __init__(self, options: WorkerOptions, effects: Iterable[str]) -> None:
        self._options = options
        self._effects = tuple(effects)
        self._queues: list[str] = list(options.queues or ())
        """The queues to claim from, the one whose turn is next in front; empty: all queues in one order."""
        self._left = options.max_jobs
        """How many attempts a bounded worker may still begin."""
        self.outstanding = 0
        """How many claimed jobs have not been settled or handed back."""

    @property
    def used_up(self) -> bool:
        """Whether the bound lets no other attempt begin."""
        return self._left == 0

    def request(self, room: int) -> ClaimRequest | None:
        """The next claim of up to ``room`` jobs; None where there is no room within the bound."""
        if self._left is not None:
            room = min(room, self._left)
        if room < 1:
            return None
        if self._queues:
            # One queue at a time, each first in its turn: a full one never starves the others.
            self._queues.append(self._queues.pop(0))
        return ClaimRequest(
            claimant=self._options.claimant,
            lease_ms=self._options.lease_ms,
            max_attempts=self._options.max_attempts,
            limit=room,
            queues=(self._queues[-1],) if self._queues else None,
            effects=self._effects,
        )

    def others(self, first: ClaimRequest) -> list[ClaimRequest]:
        """The same claim from each of the queues whose turn it was not."""
        return [replace(first, queues=(queue,)) for queue in self._queues[:-1] if first.queues]

    def claimed(self, jobs: int) -> None:
        """This many jobs were claimed."""
        self.outstanding += jobs
        if self._left is not None:
            self._left -= jobs

    def handed_back(self, jobs: int) -> None:
        """This many claimed jobs are handed back, and may be claimed again."""
        self.outstanding -= jobs
        if self._left is not None:
            self._left += jobs
