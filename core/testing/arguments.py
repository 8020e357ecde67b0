"""Arguments that break a rule are refused where they come in: typed, and with nothing stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..errors import InvalidInput
from ..ledgers.protocol import Ledger
from ..model.inputs import NewJob
from ..model.job import ClaimRequest
from ..model.query import JobQuery
from ..model.receipts import Receipt, Settlement
from .base import Contract, claim, claim_one, enqueue

WRONG: dict[str, Callable[[Any], Any]] = {
    "retry at a fraction": lambda it: it.retry("a", 1, run_at_ms=1.5, error="x", max_attempts=3),
    "retry before the epoch": lambda it: it.retry("a", 1, run_at_ms=-1, error="x", max_attempts=3),
    "retry with no attempts": lambda it: it.retry("a", 1, run_at_ms=1, error="x", max_attempts=0),
    "retry with None attempts": lambda it: it.retry("a", 1, run_at_ms=1, error="x", max_attempts=None),
    "retry past what is exact": lambda it: it.retry("a", 1, run_at_ms=2**53, error="x", max_attempts=3),
    "claim at a fraction": lambda it: claim(it, 1.5),  # type: ignore[arg-type]
    "claim before the epoch": lambda it: claim(it, -1),
    "claim a lease of a fraction": lambda it: claim(it, 1, lease_ms=1.5),
    "claim nothing": lambda it: claim(it, 1, limit=0),
    "claim too many": lambda it: claim(it, 1, limit=10_001),
    "claim from a string": lambda it: claim(it, 1, queues="default"),
    "claim from a generator": lambda it: claim(it, 1, effects=(effect for effect in ["count"])),
    "claim from a number": lambda it: claim(it, 1, queues=5),
    "claim as a surrogate": lambda it: claim(it, 1, claimant="\ud800"),
    "claim with a number for an error": lambda it: claim(it, 1, lost_error=5),
    "inputs of a string": lambda it: it.read_inputs("ab"),
    "receipts of a string": lambda it: it.receipts("ab"),
    "receipts of nothing": lambda it: it.receipts(None),
    "a job with no stamps at all": lambda it: it.enqueue([NewJob("b", "text", stamps=None)]),  # type: ignore[arg-type]
    "what is due of a string": lambda it: it.next_due_ms(queues="default"),
    "heartbeat by a fraction": lambda it: it.heartbeat("a", 1, extend_ms=20.5),
    "begin before the epoch": lambda it: it.begin("a", 1, now_ms=-7),
    "fail at a fraction": lambda it: it.fail("a", 1, error="x", now_ms=1.5),
    "fail with a number": lambda it: it.fail("a", 1, error=5),
    "a fence as text": lambda it: it.complete("a", "1"),
    "a fence as a boolean": lambda it: it.complete("a", True),
    "a fence as a fraction": lambda it: it.complete("a", 1.0),
    "cancel before the epoch": lambda it: it.cancel("a", now_ms=-7),
    "cancel for a surrogate": lambda it: it.cancel("a", reason="\ud800"),
    "a page of nothing": lambda it: it.jobs(JobQuery(limit=0)),
    "a state that there is not": lambda it: it.jobs(JobQuery(states=["zap"])),  # type: ignore[list-item]
    "a search by a fraction": lambda it: it.jobs(JobQuery(since_ms=1.5)),  # type: ignore[arg-type]
    "a search for a NUL": lambda it: it.jobs(JobQuery(error="a\0")),
    "a page after a number": lambda it: it.jobs(JobQuery(after=5)),  # type: ignore[arg-type]
    "enqueue one without a list": lambda it: it.enqueue(NewJob("b", "text")),
    "enqueue what is no job": lambda it: it.enqueue([("a", "text")]),
    "a receipt with a reserved key": lambda it: it.publish(Receipt("a", "00", {"id": 1})),
    "a receipt of a bad effect": lambda it: it.publish(Receipt("a", "00", {}, "NO!", "1")),
    "a receipt of a version that is no text": lambda it: it.publish(Receipt("a", "00", {}, "o", 1)),  # type: ignore[arg-type]
    "a count receipt with a version": lambda it: it.publish(Receipt("a", "00", {}, "count", "1")),
    "a receipt that is too large": lambda it: it.publish(Receipt("a", "00", {"n": "x" * 65_536})),
    "a receipt that is no JSON": lambda it: it.publish(Receipt("a", "00", {"n": float("nan")})),
    "a receipt with a surrogate": lambda it: it.publish(Receipt("a", "00", {"n": "\ud800"})),
    "settled by a reserved key": lambda it: it.settle(
        [Settlement("a", 1, Receipt("a", "00", {"effect": "x"}))]
    ),
    "settled by another's receipt": lambda it: it.settle([Settlement("a", 1, Receipt("b", "00", {}))]),
    "settled under a fence as text": lambda it: it.settle(
        [Settlement._make(("a", "1", Receipt("a", "00", {})))]
    ),
    "settled by what is no settlement": lambda it: it.settle([("a", 1, Receipt("a", "00", {}))]),
    "settled by another's receipt while claiming": lambda it: it.settle_and_claim(
        [Settlement("a", 1, Receipt("b", "00", {}))],
        ClaimRequest("w", lease_ms=10, max_attempts=3),
    ),
}


class ArgumentContract(Contract):
    """Every verb refuses what it cannot carry."""

    @pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
    def test_an_argument_that_breaks_a_rule_is_refused_and_stores_nothing(
        self, ledger: Ledger, call: Callable[[Any], Any]
    ) -> None:
        enqueue(ledger, "a")
        claim_one(ledger, 100)
        before = ledger.get_job("a")
        with pytest.raises(InvalidInput):
            call(ledger)
        assert ledger.get_job("a") == before
        assert ledger.receipts(["a", "b"]) == {}
        assert ledger.counts()["running"] == 1
        assert ledger.complete("a", 1, now_ms=101)
