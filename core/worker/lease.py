"""The lease of one claim, as the worker sees it: by the monotonic clock, and never longer than the ledger grants it."""

from __future__ import annotations

from time import monotonic
from typing import Final

from ..model.effect import EffectRequest
from ..model.job import Job

RETRY_S: Final = 0.2
NEVER: Final = float("inf")


class Lease:
    """The lease of a claimed job. All instants are ``time.monotonic()`` seconds.

    ``Heartbeats`` writes the instants while it keeps the lease; whoever finds the lease gone calls ``lose``.
    """

    __slots__ = ("beating", "deadline", "give_up_at", "job", "length_s", "lost", "next_beat", "request")

    def __init__(self, job: Job, *, length_s: float, claim_sent: float) -> None:
        self.job = job
        self.length_s = length_s
        # From before the claim was sent: by this clock the lease never seems longer than it is.
        self.deadline = claim_sent + length_s
        self.next_beat = claim_sent + length_s / 3
        self.give_up_at = NEVER
        """When the attempt has taken too long."""
        self.beating = False
        """Whether a heartbeat is under way or waits to be sent."""
        self.lost = False
        self.request: EffectRequest | None = None
        """What is told to the effect: the deadline, and that the lease is gone."""

    @property
    def retry_s(self) -> float:
        """How soon a heartbeat that did not reach the ledger is sent again."""
        return min(RETRY_S, self.length_s / 10)

    def has_passed(self, part: float) -> bool:
        """Whether this part of the lease has gone by since the claim was sent or the lease was last renewed."""
        return monotonic() >= self.instant_of(part)

    def instant_of(self, part: float) -> float:
        """When this part of the lease has gone by."""
        return self.deadline - (1 - part) * self.length_s

    def extended(self, sent: float) -> None:
        """The ledger renewed the lease by a heartbeat that was sent at ``sent``.

        Two may be under way, one of the effect's own among them: an older one that answers late changes nothing.
        """
        if sent + self.length_s <= self.deadline:
            return
        self.deadline = sent + self.length_s
        self.next_beat = sent + self.length_s / 3
        if self.request is not None:
            self.request.deadline = self.deadline

    def lose(self) -> None:
        """The lease is gone, or given up: tell the effect."""
        self.lost = True
        if self.request is not None:
            self.request.lose()
