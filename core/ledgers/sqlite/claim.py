"""The claim: let in what has become due, reap what is due, pick what is ready; all by lanes, see ``lanes.py``."""

from __future__ import annotations

import json
from typing import Final

from ...model.job import (
    REAP_LIMIT,
    ClaimRequest,
    Job,
    claim_order,
)
from ..rows import claimed_job
from .dead import bury
from .lanes import Lanes
from .transaction import Transaction

PROMOTE_LIMIT: Final = 10_000
"""How many delayed jobs one transaction lets into the claim's index at most."""


class Claim:
    """One claim at one instant, inside of a transaction: ``prepare`` first, then ``take``."""

    def __init__(self, transaction: Transaction, request: ClaimRequest, now_ms: int) -> None:
        self._transaction = transaction
        self._request = request
        self._now_ms = now_ms
        self._lanes = Lanes(transaction, request.queues, request.effects)
        self._bounds = {"now_ms": now_ms, "max_attempts": request.max_attempts}
        ((self._due, self._passed),) = self._lanes.rows("passed", self._bounds)

    def prepare(self) -> bool:
        """Put into the claim's index what belongs there, and out of it what does not; True if more may be left.

        Then the transaction is to be committed and another claim begun: each of these steps is short.
        """
        if self._due:
            promoting = {"now_ms": self._now_ms, "limit": PROMOTE_LIMIT}
            if self._lanes.change("promote", promoting) == PROMOTE_LIMIT:
                return True
        return self._lanes.return_passed_over() or self._lanes.pass_over(self._request.limit)

    def take(self) -> list[Job]:
        """Reap what has passed, then pick; the jobs in the order of claims."""
        if self._passed:
            self._reap()
        request, now_ms = self._request, self._now_ms
        picking = {"lease_ms": request.lease_ms, "claimant": request.claimant, "limit": request.limit}
        rows = self._lanes.rows("pick", self._bounds | picking)
        rows.sort()  # by key: no two are the same
        jobs = [claimed_job(row, claimant=request.claimant, now_ms=now_ms) for row in rows]
        jobs.sort(key=claim_order)  # stable: equals stay in order of enqueue
        return jobs

    def _reap(self) -> None:
        """Do what time has done to the jobs that the claim serves; at most 1,000, the longest passed first."""
        request, now_ms = self._request, self._now_ms
        verdicts: dict[str, list[int]] = {"expire": [], "lose": [], "exhaust": [], "reclaim": []}
        for key, verdict in self._lanes.rows("reapable", self._bounds | {"limit": REAP_LIMIT}):
            verdicts[verdict].append(key)
        bury(self._transaction, verdicts["expire"], error=request.expired_error, now_ms=now_ms)
        bury(self._transaction, verdicts["exhaust"], error=request.exhausted_error, now_ms=now_ms)
        if verdicts["lose"]:
            lost = {"keys": json.dumps(verdicts["lose"]), "error": request.lost_error}
            self._transaction.change("lose", lost)
        if verdicts["reclaim"]:
            self._transaction.change("reclaim", {"keys": json.dumps(verdicts["reclaim"])})
