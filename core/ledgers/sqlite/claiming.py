"""The claim: promote what has become due, settle what has passed, pick what is ready; all by lanes.

A lane is a (queue, effect) pair. Every index of the claim's path is led by it, so that whatever lies in other
lanes costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

from ...job import SETTLE_LIMIT, ClaimRequest, Job, claim_order
from ..rows import job_of
from .burying import bury
from .transaction import Transaction

PROMOTE_LIMIT: Final = 10_000
"""How many delayed jobs one transaction lets into the claim's index at most."""

_KEY: Final = -1

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


def open_lanes(transaction: Transaction, served: Sequence[Lane]) -> list[Lane]:
    """The lanes whose queue is not paused."""
    paused = {queue for (queue,) in transaction.rows("paused")}
    return [lane for lane in served if lane[0] not in paused] if paused else list(served)


def promote(transaction: Transaction, served: Sequence[Lane], now_ms: int) -> bool:
    """Let delayed jobs that are due into the claim's index; True if more may be due."""
    bounds = {"lanes": json.dumps(served), "now_ms": now_ms, "limit": PROMOTE_LIMIT}
    return transaction.change("promote", bounds) == PROMOTE_LIMIT


def claim(transaction: Transaction, request: ClaimRequest, served: Sequence[Lane], now_ms: int) -> list[Job]:
    """Settle, then pick, in the order of claims. Due jobs have been promoted before."""
    _settle(transaction, request, served, now_ms)
    picked = transaction.rows(
        "pick",
        {
            "lanes": json.dumps(open_lanes(transaction, served)),
            "now_ms": now_ms,
            "lease_ms": request.lease_ms,
            "max_attempts": request.max_attempts,
            "claimant": request.claimant,
            "limit": request.limit,
        },
    )
    jobs = [(job_of(row), row[_KEY]) for row in picked]
    jobs.sort(key=lambda entry: (*claim_order(entry[0]), entry[1]))
    return [job for job, _ in jobs]


def _settle(transaction: Transaction, request: ClaimRequest, served: Sequence[Lane], now_ms: int) -> None:
    """Do what time has done to the jobs that the claim serves; at most 1,000, the longest passed first."""
    bounds = {"lanes": json.dumps(served), "now_ms": now_ms, "max_attempts": request.max_attempts}
    if not transaction.value("passed", bounds):
        return
    verdicts: dict[str, list[int]] = {"expire": [], "lose": [], "exhaust": [], "reclaim": []}
    for key, verdict in transaction.rows("settleable", bounds | {"limit": SETTLE_LIMIT}):
        verdicts[verdict].append(key)
    bury(transaction, verdicts["expire"], error=request.expired_error, now_ms=now_ms)
    bury(transaction, verdicts["exhaust"], error=request.exhausted_error, now_ms=now_ms)
    if verdicts["lose"]:
        transaction.change("lose", {"keys": json.dumps(verdicts["lose"]), "error": request.lost_error})
    if verdicts["reclaim"]:
        transaction.change("reclaim", {"keys": json.dumps(verdicts["reclaim"])})
