"""What an operator does to a job: cancel, reschedule, redrive, resolve."""

from __future__ import annotations

from typing import Any

import pytest

from ..errors import InvalidInput, LimitExceeded, ReceiptConflict
from ..ledgers.protocol import Ledger
from ..model.inputs import text_sha256
from ..model.receipts import Receipt
from .base import (
    LEASE_MS,
    Contract,
    claim,
    claim_one,
    enqueue,
    job_of,
    receipt,
)

BAD_OUTCOMES: dict[str, dict[Any, Any]] = {
    "reserved id": {"id": "a"},
    "reserved digest": {"input_sha256": "x"},
    "reserved effect": {"effect": "count"},
    "reserved version": {"effect_version": "1"},
    "a key that is no string": {1: 2},
    "not a number": {"x": float("nan")},
    "not JSON": {"x": {1, 2}},
}


class OperatorContract(Contract):
    """Manual actions, and what they leave behind."""

    # -- cancel --

    @pytest.mark.parametrize("started", [False, True])
    def test_cancelling_a_running_job_refuses_its_holder(self, ledger: Ledger, started: bool) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        if started:
            ledger.begin("a", job.version, now_ms=1)
        assert ledger.cancel("a", now_ms=2)
        assert not ledger.heartbeat("a", job.version, now_ms=3)
        assert not ledger.complete("a", job.version, now_ms=3)
        assert not ledger.retry("a", job.version, run_at_ms=None, error="no", max_attempts=9, now_ms=3)
        dead = job_of(ledger)
        assert (dead.state, dead.last_error, dead.died_at_ms) == ("dead", "cancelled", 2)
        assert (dead.version, dead.attempts, dead.lease_until_ms) == (2, 1, 0)

    def test_a_cancelled_job_is_not_claimed(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b")
        assert ledger.cancel("a", now_ms=1)
        assert claim_one(ledger, 2).id == "b"
        assert not ledger.cancel("a", now_ms=3)

    def test_the_error_of_a_cancel_can_be_given(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        ledger.cancel("a", error="superseded", now_ms=1)
        assert job_of(ledger).last_error == "superseded"

    # -- reschedule --

    def test_a_job_that_is_put_off_is_claimed_at_its_new_time(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=5)
        assert claim(ledger, 4) == []
        assert ledger.reschedule("a", run_at_ms=100, now_ms=4)
        assert claim(ledger, 99) == []
        assert ledger.next_due_ms() == 100
        assert claim_one(ledger, 100).run_at_ms == 100

    def test_a_job_that_was_due_already_can_be_put_off(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", run_at_ms=5)
        assert claim_one(ledger, 50).id == "a"
        assert ledger.reschedule("b", run_at_ms=100, now_ms=50)
        assert claim(ledger, 99) == []
        assert claim_one(ledger, 100).id == "b"

    def test_a_delayed_job_can_be_brought_forward(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=9_000)
        assert ledger.reschedule("a", run_at_ms=0, now_ms=1)
        assert claim_one(ledger, 1).id == "a"

    def test_a_job_of_another_priority_takes_its_new_place(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c")
        assert ledger.reschedule("c", priority=1, now_ms=1)
        assert ledger.reschedule("a", priority=-1, now_ms=1)
        assert [claim_one(ledger, 2).id for _ in "abc"] == ["c", "b", "a"]

    def test_what_is_not_given_stays_as_it_is(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=7, priority=3)
        before = job_of(ledger)
        assert ledger.reschedule("a", priority=4, now_ms=1)
        assert job_of(ledger) == before._replace(priority=4)
        assert ledger.reschedule("a", run_at_ms=8, now_ms=1)
        assert job_of(ledger) == before._replace(priority=4, run_at_ms=8)

    # -- redrive --

    def test_a_redriven_job_begins_again(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=5)
        job = claim_one(ledger, 5, max_attempts=1)
        ledger.retry("a", job.version, run_at_ms=9_000, error="no", max_attempts=1, now_ms=6)
        assert ledger.redrive("a", now_ms=7)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts) == ("queued", 3, 0)
        assert (after.run_at_ms, after.last_error, after.died_at_ms) == (None, None, None)
        fresh = claim_one(ledger, 7, max_attempts=1)
        assert (fresh.attempts, fresh.version) == (1, 4)
        assert not ledger.complete("a", job.version, now_ms=8)

    @pytest.mark.parametrize(("offset_ms", "kept"), [(-1, True), (0, False), (+1, False)])
    def test_a_redrive_clears_an_expiry_that_has_passed(
        self, ledger: Ledger, offset_ms: int, kept: bool
    ) -> None:
        enqueue(ledger, "a", expires_at_ms=500)
        ledger.cancel("a", now_ms=1)
        assert ledger.redrive("a", now_ms=500 + offset_ms)
        assert job_of(ledger).expires_at_ms == (500 if kept else None)
        if not kept:
            assert claim_one(ledger, 9_000).id == "a"

    def test_redriving_what_had_started_and_left_no_receipt_holds_it(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", effect="send")
        job = claim_one(ledger, 0)
        ledger.begin("a", job.version, now_ms=1)
        ledger.cancel("a", now_ms=2)
        assert ledger.redrive("a", now_ms=3)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts) == ("held", 3, 0)
        assert (after.last_error, after.died_at_ms) == ("attempt lost after its start", None)
        assert claim(ledger, 9_000) == []

    def test_redriving_what_had_started_and_left_its_receipt_queues_it(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", effect="send")
        job = claim_one(ledger, 0)
        ledger.begin("a", job.version, now_ms=1)
        ledger.publish(receipt(effect="send"))
        ledger.cancel("a", now_ms=2)
        assert ledger.redrive("a", now_ms=3)
        assert (job_of(ledger).state, job_of(ledger).started_at_ms) == ("queued", None)
        lost = claim_one(ledger, 4)
        assert claim_one(ledger, lost.lease_until_ms).attempts == 2

    @pytest.mark.parametrize("answer", ["retry", "fail"])
    def test_redriving_what_its_owner_said_was_not_done_queues_it(self, ledger: Ledger, answer: str) -> None:
        enqueue(ledger, "a", effect="send")
        job = claim_one(ledger, 0)
        ledger.begin("a", job.version, now_ms=1)
        if answer == "retry":
            ledger.retry("a", job.version, run_at_ms=9, error="rate limited", max_attempts=1, now_ms=2)
        else:
            ledger.fail("a", job.version, error="no such card", now_ms=2)
        assert (job_of(ledger).state, job_of(ledger).started_at_ms) == ("dead", None)
        assert ledger.redrive("a", now_ms=3)
        assert claim_one(ledger, 4).attempts == 1

    # -- resolve --

    def held(self, ledger: Ledger, effect: str = "send") -> int:
        """Hold the job "a", started; returns its version."""
        enqueue(ledger, "a", effect=effect)
        job = claim_one(ledger, 0)
        ledger.begin("a", job.version, now_ms=1)
        assert ledger.hold("a", job.version, error="look", now_ms=2)
        return job.version + 1

    def test_resolved_as_applied_publishes_the_outcome(self, ledger: Ledger) -> None:
        version = self.held(ledger)
        assert ledger.resolve("a", decision="applied", outcome={"sent": 1}, now_ms=3)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts) == ("completed", version + 1, 1)
        if ledger.capabilities.keeps_claim_details:
            assert after.completed_at_ms == 3
        found = ledger.receipts(["a"])["a"]
        assert found.same_as(Receipt("a", text_sha256("text of a"), {"sent": 1}, "send", None))

    def test_resolved_as_applied_adopts_the_receipt_that_is_there(self, ledger: Ledger) -> None:
        self.held(ledger)
        ledger.publish(receipt(effect="send"))
        assert ledger.resolve("a", decision="applied", now_ms=3)
        assert job_of(ledger).state == "completed"
        assert ledger.receipts(["a"])["a"].same_as(receipt(effect="send"))

    def test_no_version_of_an_effect_stands_in_the_receipt_that_an_operator_gives(
        self, ledger: Ledger
    ) -> None:
        self.held(ledger)
        ledger.resolve("a", decision="applied", outcome={"sent": 1}, now_ms=3)
        assert ledger.receipts(["a"])["a"].effect_version is None
        assert ledger.publish(Receipt("a", text_sha256("text of a"), {"sent": 1}, "send")).reused
        with pytest.raises(ReceiptConflict):
            ledger.publish(Receipt("a", text_sha256("text of a"), {"sent": 1}, "send", "1"))

    def test_the_version_in_a_receipt_stays_where_an_operator_says_the_same(self, ledger: Ledger) -> None:
        self.held(ledger)
        there = Receipt("a", text_sha256("text of a"), {"sent": 1}, "send", "7")
        ledger.publish(there)
        assert ledger.resolve("a", decision="applied", outcome={"sent": 1}, now_ms=3)
        assert ledger.receipts(["a"])["a"].same_as(there)

    def test_resolved_as_applied_takes_the_outcome_that_the_receipt_says(self, ledger: Ledger) -> None:
        self.held(ledger)
        ledger.publish(receipt(effect="send", x=1, y=2))
        assert ledger.resolve("a", decision="applied", outcome={"y": 2, "x": 1}, now_ms=3)
        assert job_of(ledger).state == "completed"

    def test_resolved_as_applied_needs_an_outcome_or_a_receipt(self, ledger: Ledger) -> None:
        self.held(ledger)
        self.refused(ledger, InvalidInput, outcome=None)
        assert ledger.receipts(["a"]) == {}

    def test_an_outcome_that_the_receipt_contradicts_is_a_conflict(self, ledger: Ledger) -> None:
        self.held(ledger)
        ledger.publish(receipt(effect="send", x=1))
        self.refused(ledger, ReceiptConflict, outcome={"x": True})
        assert ledger.receipts(["a"])["a"].same_as(receipt(effect="send", x=1))

    @pytest.mark.parametrize(
        "there",
        [
            Receipt("a", text_sha256("text of a"), {"x": 1}, "other", "1"),
            Receipt("a", text_sha256("another text"), {"x": 1}, "send", "1"),
        ],
        ids=["another effect's", "another input's"],
    )
    def test_a_receipt_that_is_not_the_jobs_own_contradicts_every_outcome(
        self, ledger: Ledger, there: Receipt
    ) -> None:
        self.held(ledger)
        ledger.publish(there)
        self.refused(ledger, ReceiptConflict, outcome={"x": 1})
        assert ledger.receipts(["a"])["a"].same_as(there)

    @pytest.mark.parametrize("outcome", BAD_OUTCOMES.values(), ids=BAD_OUTCOMES)
    def test_an_outcome_that_breaks_a_rule_is_refused(self, ledger: Ledger, outcome: dict[str, Any]) -> None:
        self.held(ledger)
        self.refused(ledger, InvalidInput, outcome=outcome)
        assert ledger.receipts(["a"]) == {}

    def test_an_outcome_of_more_than_64_kib_is_refused(self, ledger: Ledger) -> None:
        self.held(ledger)
        self.refused(ledger, LimitExceeded, outcome={"x": "y" * 64 * 1024})

    def refused(self, ledger: Ledger, error: type[Exception], outcome: dict[str, Any] | None) -> None:
        """Resolving so is an error, and leaves job and audit alone."""
        before = job_of(ledger)
        with pytest.raises(error):
            ledger.resolve("a", decision="applied", outcome=outcome, actor="me", now_ms=3)
        assert job_of(ledger) == before
        assert ledger.audit() == []

    def test_resolved_as_retry_is_tried_again(self, ledger: Ledger) -> None:
        version = self.held(ledger)
        assert ledger.resolve("a", decision="retry", now_ms=3)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts) == ("queued", version + 1, 0)
        assert (after.run_at_ms, after.started_at_ms, after.last_error) == (None, None, "look")
        fresh = claim_one(ledger, 3, max_attempts=1)
        assert claim(ledger, fresh.lease_until_ms, max_attempts=2) != [], "it is not taken for started"

    def test_resolved_as_failed_is_buried(self, ledger: Ledger) -> None:
        version = self.held(ledger)
        assert ledger.resolve("a", decision="fail", now_ms=3)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts) == ("dead", version + 1, 1)
        assert (after.last_error, after.died_at_ms) == ("resolved as failed; it was held for: look", 3)

    def test_the_error_of_what_is_resolved_as_failed_can_be_given(self, ledger: Ledger) -> None:
        self.held(ledger)
        assert ledger.resolve("a", decision="fail", error="it was not sent", now_ms=3)
        assert job_of(ledger).last_error == "it was not sent; it was held for: look"

    def test_what_a_job_was_held_for_is_cut_before_the_operators_word(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.hold("a", job.version, error="é" * 500_000, now_ms=1)
        assert ledger.resolve("a", decision="fail", now_ms=2)
        assert (job_of(ledger).last_error or "").startswith("resolved as failed; it was held for: ééé")

    @pytest.mark.parametrize("decision", ["aply", "", "Fail", None])
    def test_a_decision_that_is_none_is_refused(self, ledger: Ledger, decision: Any) -> None:
        self.held(ledger)
        before = job_of(ledger)
        with pytest.raises(InvalidInput):
            ledger.resolve("a", decision=decision, now_ms=3)
        assert job_of(ledger) == before

    def test_a_held_job_waits_for_its_operator_whatever_passes(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", expires_at_ms=500)
        job = claim_one(ledger, 0)
        ledger.hold("a", job.version, error="look", now_ms=2)
        before = job_of(ledger)
        assert claim(ledger, 9_000, max_attempts=1) == []
        assert ledger.sweep_expired(now_ms=9_000).expired == 0
        assert not ledger.complete("a", job.version, now_ms=3)
        assert job_of(ledger) == before

    def test_a_redriven_job_can_die_and_be_redriven_again(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        for round in range(3):
            job = claim_one(ledger, round * LEASE_MS, max_attempts=1)
            assert job.attempts == 1
            assert ledger.fail("a", job.version, error="no", now_ms=round * LEASE_MS + 1)
            assert ledger.redrive("a", now_ms=round * LEASE_MS + 2)
        assert job_of(ledger).version == 9
