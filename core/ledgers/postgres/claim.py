"""The claim: let in what has become due, reap what is due, pick what is ready; all by lanes, see ``lanes.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...model.job import (
    REAP_LIMIT,
    ClaimRequest,
    Job,
    claim_order,
)
from ...model.texts import storable
from ..rows import claimed_job
from .arrays import int_array, text_array
from .dead import bury
from .lanes import Lanes, served_arrays
from .transaction import Row, Transaction

PROMOTE_LIMIT: Final = 10_000
"""How many delayed jobs one transaction lets into the claim's index at most."""


def survey(request: ClaimRequest, now_ms: int | None) -> tuple[str, dict[str, Any]]:
    """The statement that a claim begins with."""
    served = served_arrays(request.queues, request.effects)
    bounds = {"now_ms": now_ms, "max_attempts": request.max_attempts, "limit": request.limit}
    return "lanes", served | bounds


class Claim:
    """One claim at one instant, inside of a transaction: ``prepare`` first, then ``take``, which commits."""

    def __init__(
        self, transaction: Transaction, request: ClaimRequest, now_ms: int, found: Sequence[Row]
    ) -> None:
        """``found`` is what ``survey`` gave."""
        self._transaction = transaction
        self._request = request
        self._now_ms = now_ms
        self._claimant = storable(request.claimant)
        all_queues = request.queues is None
        _, _, paused, ahead, resuming, due, passed = zip(*found, strict=True) if found else ((),) * 7
        self._any_paused, self._ahead, self._resuming = any(paused), any(ahead), any(resuming)
        self._due, self._passed = any(due), any(passed)
        self._bounds = {"now_ms": now_ms, "max_attempts": request.max_attempts}
        self._served = Lanes(
            transaction, [(queue, effect) for queue, effect, *_ in found], all_queues=all_queues
        )
        self._open = Lanes(
            transaction,
            [(queue, effect) for queue, effect, paused, *_ in found if all_queues or not paused],
            all_queues=all_queues,
        )

    def prepare(self) -> bool:
        """Put into the claim's index what belongs there, and out of it what does not; True if more may be left.

        Then the transaction is to be committed and another claim begun: each of these steps is short.
        """
        if self._due:
            promoting = {"now_ms": self._now_ms, "limit": PROMOTE_LIMIT}
            if self._served.change("promote", promoting) == PROMOTE_LIMIT:
                return True
        if self._resuming and self._served.return_passed_over():
            self._transaction.wake()
            return True
        return self._ahead and self._served.pass_over(self._request.limit)

    def take(self) -> list[Job]:
        """Reap what has passed, then pick; the jobs in the order of claims."""
        if self._passed:
            self._reap()
        rows = self._pick()
        rows.sort()  # by key: no two are the same
        jobs = [claimed_job(row, claimant=self._claimant, now_ms=self._now_ms) for row in rows]
        jobs.sort(key=claim_order)  # stable: equals stay in order of enqueue
        return jobs

    def _reap(self) -> None:
        """Do what time has done to the jobs that the claim serves; at most 1,000, the longest passed first."""
        transaction, request, now_ms = self._transaction, self._request, self._now_ms
        verdicts: dict[str, list[str]] = {"expire": [], "lose": [], "exhaust": [], "reclaim": []}
        for id, verdict in self._served.rows("reapable", self._bounds | {"limit": REAP_LIMIT}):
            verdicts[verdict].append(id)
        bury(transaction, verdicts["expire"], error=request.expired_error, now_ms=now_ms)
        bury(transaction, verdicts["exhaust"], error=request.exhausted_error, now_ms=now_ms)
        if verdicts["lose"]:
            lost = {"ids": text_array(verdicts["lose"]), "error": storable(request.lost_error)}
            transaction.change("lose", lost)
        if verdicts["reclaim"]:
            transaction.change("reclaim", {"ids": text_array(verdicts["reclaim"])})
            transaction.wakes = True

    def _pick(self) -> list[Row]:
        limit, lanes = self._request.limit, self._open
        if not lanes.found:
            return []
        if len(lanes.found) == 1:
            return self._transaction.last("pick", self._picking(lanes, [limit]))
        counting = {"limit": limit, "any_paused": self._any_paused}
        found = lanes.rows("shares", self._bounds | counting)
        if not found:
            return []
        shares = [share for _, share in found]
        rows = self._transaction.rows(
            "pick", self._picking(lanes.of([place - 1 for place, _ in found]), shares)
        )
        for place in range(len(lanes.found)) if len(rows) < sum(shares) else ():
            # Others were picking from the same lanes: what is left may lie in another one than it did.
            if len(rows) < limit:
                rows += self._transaction.rows("pick", self._picking(lanes.of([place]), [limit - len(rows)]))
        return rows

    def _picking(self, lanes: Lanes, shares: Sequence[int]) -> dict[str, Any]:
        return {
            **self._bounds,
            **lanes.arrays,
            "shares": int_array(shares),
            "any_paused": self._any_paused,
            "lease_ms": self._request.lease_ms,
            "claimant": self._claimant,
        }
