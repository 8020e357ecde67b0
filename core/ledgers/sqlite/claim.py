"""The claim: promote what has become due, reap what is due, pick what is ready; all by lanes.

A lane is a (queue, effect) pair. Every index of the claim's path is led by it, so that whatever lies in other
lanes costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

from ...model.job import (
    REAP_LIMIT,
    ClaimRequest,
    Job,
    claim_order,
)
from ..rows import claimed_job
from .dead import bury
from .transaction import Transaction

PROMOTE_LIMIT: Final = 10_000
"""How many delayed jobs one transaction lets into the claim's index at most."""

Lane: TypeAlias = tuple[str, str]


def lanes(
    transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
) -> list[Lane]:
    """The lanes that these queues and effects cover; None means all that have a job to claim or to reap."""
    if queues is not None and effects is not None:
        return [(queue, effect) for queue in _names(queues) for effect in _names(effects)]
    return [
        (queue, effect)
        for queue, effect in transaction.rows("lanes")
        if (queues is None or queue in queues) and (effects is None or effect in effects)
    ]


def _names(given: Sequence[str]) -> list[str]:
    """Each once; nothing has a name with a NUL, and SQLite's JSON would end it there."""
    return [name for name in dict.fromkeys(given) if "\0" not in name]


def open_lanes(transaction: Transaction, served: list[Lane]) -> list[Lane]:
    """The lanes whose queue is not paused."""
    paused = {queue for (queue,) in transaction.rows("paused")}
    return [lane for lane in served if lane[0] not in paused] if paused else served


class Claim:
    """One claim at one instant, inside of a transaction: ``promote`` first, then ``take``."""

    def __init__(self, transaction: Transaction, request: ClaimRequest, now_ms: int) -> None:
        self._transaction = transaction
        self._request = request
        self._now_ms = now_ms
        self._served = lanes(transaction, request.queues, request.effects)
        self._lanes = json.dumps(self._served)
        passed = {"lanes": self._lanes, "now_ms": now_ms, "max_attempts": request.max_attempts}
        ((self._due, self._passed),) = transaction.rows("passed", passed)

    def promote(self) -> bool:
        """Let delayed jobs that are due into the claim's index; True if more may be due than were let in."""
        bounds = {"lanes": self._lanes, "now_ms": self._now_ms, "limit": PROMOTE_LIMIT}
        return bool(self._due) and self._transaction.change("promote", bounds) == PROMOTE_LIMIT

    def take(self) -> list[Job]:
        """Settle what has passed, then pick; the jobs in the order of claims."""
        if self._passed:
            self._settle()
        unpaused = open_lanes(self._transaction, self._served)
        rows = self._transaction.rows(
            "pick",
            {
                "lanes": self._lanes if unpaused is self._served else json.dumps(unpaused),
                "now_ms": self._now_ms,
                "lease_ms": self._request.lease_ms,
                "max_attempts": self._request.max_attempts,
                "claimant": self._request.claimant,
                "limit": self._request.limit,
            },
        )
        rows.sort()  # by key: no two are the same
        jobs = [claimed_job(row, claimant=self._request.claimant, now_ms=self._now_ms) for row in rows]
        jobs.sort(key=claim_order)  # stable: equals stay in order of enqueue
        return jobs

    def _settle(self) -> None:
        """Do what time has done to the jobs that the claim serves; at most 1,000, the longest passed first."""
        request, now_ms = self._request, self._now_ms
        verdicts: dict[str, list[int]] = {"expire": [], "lose": [], "exhaust": [], "reclaim": []}
        for key, verdict in self._transaction.rows(
            "reapable",
            {
                "lanes": self._lanes,
                "now_ms": now_ms,
                "max_attempts": request.max_attempts,
                "limit": REAP_LIMIT,
            },
        ):
            verdicts[verdict].append(key)
        bury(self._transaction, verdicts["expire"], error=request.expired_error, now_ms=now_ms)
        bury(self._transaction, verdicts["exhaust"], error=request.exhausted_error, now_ms=now_ms)
        if verdicts["lose"]:
            lost = {"keys": json.dumps(verdicts["lose"]), "error": request.lost_error}
            self._transaction.change("lose", lost)
        if verdicts["reclaim"]:
            self._transaction.change("reclaim", {"keys": json.dumps(verdicts["reclaim"])})
