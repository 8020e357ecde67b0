"""The claim: promote what has become due, reap what is due, pick what is ready; all by lanes.

A lane is a (queue, effect) pair. Every index of the claim's path is led by it, so that whatever lies in other
lanes costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

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
from .transaction import Row, Transaction

PROMOTE_LIMIT: Final = 10_000
"""How many delayed jobs one transaction lets into the claim's index at most."""

Lane: TypeAlias = tuple[str, str]


def served_arrays(queues: Sequence[str] | None, effects: Sequence[str] | None) -> dict[str, str | None]:
    """The queues and effects that are asked for, each once, as the statements take them; None means all."""
    return {
        "queues": None if queues is None else text_array(list(dict.fromkeys(queues))),
        "effects": None if effects is None else text_array(list(dict.fromkeys(effects))),
    }


def lanes(request: ClaimRequest, now_ms: int | None) -> tuple[str, dict[str, Any]]:
    """The statement that a claim begins with."""
    served = served_arrays(request.queues, request.effects)
    return "lanes", served | {"now_ms": now_ms, "max_attempts": request.max_attempts}


class Claim:
    """One claim at one instant, inside of a transaction: ``promote`` first, then ``take``, which commits."""

    def __init__(
        self, transaction: Transaction, request: ClaimRequest, now_ms: int, found: Sequence[Row]
    ) -> None:
        """``found`` is what ``lanes`` gave."""
        self._transaction = transaction
        self._request = request
        self._now_ms = now_ms
        self._claimant = storable(request.claimant)
        self._unpaused: list[Lane] = [(queue, effect) for queue, effect, paused, _, _ in found if not paused]
        self._due = any(due for _, _, _, due, _ in found)
        self._passed = any(passed for _, _, _, _, passed in found)
        self._bounds = {"now_ms": now_ms, "max_attempts": request.max_attempts}
        self._served = _arrays([(queue, effect) for queue, effect, *_ in found])

    def promote(self) -> bool:
        """Let delayed jobs that are due into the claim's index; True if more may be due than were let in."""
        if not self._due:
            return False
        limited = {"limit": PROMOTE_LIMIT}
        return self._transaction.change("promote", self._bounds | self._served | limited) == PROMOTE_LIMIT

    def take(self) -> list[Job]:
        """Settle what has passed, then pick; the jobs in the order of claims."""
        if self._passed:
            self._settle()
        rows = self._pick()
        rows.sort()  # by key: no two are the same
        jobs = [claimed_job(row, claimant=self._claimant, now_ms=self._now_ms) for row in rows]
        jobs.sort(key=claim_order)  # stable: equals stay in order of enqueue
        return jobs

    def _settle(self) -> None:
        """Do what time has done to the jobs that the claim serves; at most 1,000, the longest passed first."""
        transaction, request, now_ms = self._transaction, self._request, self._now_ms
        verdicts: dict[str, list[str]] = {"expire": [], "lose": [], "exhaust": [], "reclaim": []}
        for id, verdict in transaction.rows("reapable", self._bounds | self._served | {"limit": REAP_LIMIT}):
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
        limit, unpaused = self._request.limit, self._unpaused
        if not unpaused:
            return []
        if len(unpaused) == 1:
            return self._transaction.last("pick", self._picking(unpaused, [limit]))
        found = self._transaction.rows("shares", self._bounds | _arrays(unpaused) | {"limit": limit})
        if not found:
            return []
        lanes, shares = [unpaused[place - 1] for place, _ in found], [share for _, share in found]
        rows = self._transaction.rows("pick", self._picking(lanes, shares))
        for lane in unpaused if len(rows) < sum(shares) else ():
            # Others were picking from the same lanes: what is left may lie in another one than it did.
            if len(rows) < limit:
                rows += self._transaction.rows("pick", self._picking([lane], [limit - len(rows)]))
        return rows

    def _picking(self, lanes: Sequence[Lane], shares: Sequence[int]) -> dict[str, Any]:
        return {
            **self._bounds,
            **_arrays(lanes),
            "shares": int_array(shares),
            "lease_ms": self._request.lease_ms,
            "claimant": self._claimant,
        }


def _arrays(lanes: Sequence[Lane]) -> dict[str, str]:
    return {
        "queues": text_array([queue for queue, _ in lanes]),
        "effects": text_array([effect for _, effect in lanes]),
    }
