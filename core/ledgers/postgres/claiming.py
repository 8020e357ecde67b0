"""The claim: promote what has become due, settle what has passed, pick what is ready; all by lanes.

A lane is a (queue, effect) pair. Every index of the claim's path is led by it, so that whatever lies in other
lanes costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from ...job import SETTLE_LIMIT, ClaimRequest, Job, claim_order
from ...texts import storable
from ..rows import job_of
from .arrays import int_array, text_array
from .burying import bury
from .transaction import Transaction

PROMOTE_LIMIT: Final = 10_000
"""How many delayed jobs one transaction lets into the claim's index at most."""

_key: Final = itemgetter(-1)

Lane: TypeAlias = tuple[str, str]


def lanes(
    transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
) -> list[Lane]:
    """The lanes that these queues and effects cover; None means all that have a job to claim or to settle."""
    if queues is not None and effects is not None:
        return [(queue, effect) for queue in dict.fromkeys(queues) for effect in dict.fromkeys(effects)]
    return [
        (queue, effect)
        for queue, effect in transaction.rows("lanes")
        if (queues is None or queue in queues) and (effects is None or effect in effects)
    ]


def lane_arrays(served: Sequence[Lane]) -> dict[str, Any]:
    """The lanes as the statements take them."""
    return {
        "queues": text_array([queue for queue, _ in served]),
        "effects": text_array([effect for _, effect in served]),
    }


class Claim:
    """One claim at one instant, inside of a transaction: ``promote`` first, then ``take``."""

    def __init__(self, transaction: Transaction, request: ClaimRequest, now_ms: int) -> None:
        self._transaction = transaction
        self._request = request
        self._served = lanes(transaction, request.queues, request.effects)
        self._bounds = {"now_ms": now_ms, "max_attempts": request.max_attempts} | lane_arrays(self._served)
        self._looked = transaction.rows("passed", self._bounds) if self._served else []

    def promote(self) -> bool:
        """Let delayed jobs that are due into the claim's index; True if more may be due than were let in."""
        if not any(due for _, due, _ in self._looked):
            return False
        return self._transaction.change("promote", self._bounds | {"limit": PROMOTE_LIMIT}) == PROMOTE_LIMIT

    def take(self) -> list[Job]:
        """Settle what has passed, then pick; the jobs in the order of claims."""
        if any(passed for _, _, passed in self._looked):
            self._settle()
        unpaused = [
            lane for lane, (paused, _, _) in zip(self._served, self._looked, strict=True) if not paused
        ]
        rows = self._pick_first(unpaused)
        if len(unpaused) > 1 and len(rows) < self._request.limit:
            # Others were picking from the same lanes: what is left may lie in another one than it did.
            room = self._request.limit - len(rows)
            rows += self._pick(unpaused, [room] * len(unpaused))
        rows.sort(key=_key)
        jobs = [job_of(row) for row in rows]
        jobs.sort(key=claim_order)  # stable: equals stay in order of enqueue
        return jobs

    def _settle(self) -> None:
        """Do what time has done to the jobs that the claim serves; at most 1,000, the longest passed first."""
        transaction, request, now_ms = self._transaction, self._request, self._bounds["now_ms"]
        verdicts: dict[str, list[int]] = {"expire": [], "lose": [], "exhaust": [], "reclaim": []}
        for key, verdict in transaction.rows("settleable", self._bounds | {"limit": SETTLE_LIMIT}):
            verdicts[verdict].append(key)
        bury(transaction, verdicts["expire"], error=request.expired_error, now_ms=now_ms)
        bury(transaction, verdicts["exhaust"], error=request.exhausted_error, now_ms=now_ms)
        if verdicts["lose"]:
            lost = {"keys": int_array(verdicts["lose"]), "error": storable(request.lost_error)}
            transaction.change("lose", lost)
        if verdicts["reclaim"]:
            transaction.change("reclaim", {"keys": int_array(verdicts["reclaim"])})
            transaction.wakes = True

    def _pick_first(self, unpaused: Sequence[Lane]) -> list[tuple[Any, ...]]:
        """The first jobs of all lanes."""
        limit = self._request.limit
        if len(unpaused) <= 1:
            return self._pick(unpaused, [limit])
        bounds = self._bounds | lane_arrays(unpaused) | {"limit": limit}
        shares = self._transaction.rows("shares", bounds)
        return self._pick([unpaused[place - 1] for place, _ in shares], [share for _, share in shares])

    def _pick(self, picked: Sequence[Lane], shares: Sequence[int]) -> list[tuple[Any, ...]]:
        if not picked:
            return []
        return self._transaction.rows(
            "pick",
            {
                **self._bounds,
                **lane_arrays(picked),
                "shares": int_array(shares),
                "lease_ms": self._request.lease_ms,
                "claimant": storable(self._request.claimant),
            },
        )
