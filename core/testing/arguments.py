"""Arguments that break a rule are refused where they come in: typed, and with nothing stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..errors import InvalidInput
from ..ledgers.protocol import Ledger
from ..model.checks import MAX_INT, MAX_SPAN_MS
from ..model.inputs import NewJob
from ..model.job import ClaimRequest, Job, Stamps
from ..model.query import JobQuery
from ..model.receipts import Receipt, Settlement
from .base import Contract, claim, claim_one, enqueue, ids, job_of, new, settlement

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
    "a fence that no number carries": lambda it: it.complete("a", 2**70),
    "settled under a fence that no number carries": lambda it: it.settle(
        [settlement(Job("a", version=2**70))]
    ),
    "claim a lease of more than a century": lambda it: claim(it, 1, lease_ms=MAX_SPAN_MS + 1),
    "heartbeat by more than a century": lambda it: it.heartbeat("a", 1, extend_ms=MAX_SPAN_MS + 1),
    "stamped with more than a century": lambda it: it.enqueue(
        [new("b", stamps=Stamps(visibility_timeout_s=MAX_SPAN_MS // 1_000 + 1))]
    ),
    "reschedule of nothing": lambda it: it.reschedule("a"),
    "reschedule before the epoch": lambda it: it.reschedule("a", run_at_ms=-1),
    "reschedule at half a millisecond": lambda it: it.reschedule("a", run_at_ms=0.5),
    "reschedule beyond 32 bits": lambda it: it.reschedule("a", priority=2**31),
    "reschedule for a surrogate": lambda it: it.reschedule("a", priority=1, reason="\ud800"),
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

    def test_every_figure_is_carried_at_its_maximum(self, make_ledger: Callable[[], Ledger]) -> None:
        longest_s = MAX_SPAN_MS / 1_000
        stamps = Stamps(longest_s, MAX_INT, longest_s, longest_s)
        ledger = make_ledger()
        ledger.enqueue(
            [
                new("a", priority=2**31 - 1, stamps=stamps),
                new("b", run_at_ms=MAX_INT),
                new("c", expires_at_ms=MAX_INT),
            ],
            now_ms=MAX_INT - 1,
        )
        asked: dict[str, int] = {"lease_ms": MAX_SPAN_MS, "max_attempts": MAX_INT, "limit": 10_000}
        first, last = claim(ledger, MAX_INT - 1, **asked)
        assert (first.id, first.lease_until_ms) == ("a", MAX_INT - 1 + MAX_SPAN_MS)
        assert ledger.heartbeat("a", first.version, extend_ms=MAX_SPAN_MS, now_ms=MAX_INT)
        assert ledger.fail(last.id, last.version, error="e", now_ms=MAX_INT)
        assert ids(claim(ledger, MAX_INT, **asked)) == ["b"]
        again = make_ledger()
        assert job_of(again, "a").lease_until_ms == MAX_INT + MAX_SPAN_MS
        assert (job_of(again, "a").stamps, job_of(again, "b").run_at_ms) == (stamps, MAX_INT)
        assert again.next_due_ms() == MAX_INT - 1 + MAX_SPAN_MS + 1
        assert again.sweep_expired(now_ms=MAX_INT) == (0, 0)
        assert len(again.jobs(JobQuery(max_attempts=MAX_INT, limit=MAX_INT)).jobs) == 3
        assert ids(again.latest_deaths(limit=MAX_INT)) == [last.id]
        enqueue(again, "d", now_ms=MAX_INT)
        assert ledger.wait(longest_s), "there was a commit since its last claim"
