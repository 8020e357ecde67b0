"""Receipts: written once, compared by value and JSON type, and kept whatever becomes of the completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..errors import ReceiptConflict
from ..ledgers.protocol import Ledger
from ..model.documents import canonical
from ..model.job import ClaimRequest
from ..model.receipts import Receipt, Settled, Settlement
from .base import (
    LEASE_MS,
    Contract,
    claim,
    claim_one,
    enqueue,
    ids,
    job_of,
    new,
    receipt,
    settlement,
)

DIGEST = receipt().input_sha256
OUTCOMES: dict[str, dict[str, Any]] = {
    "empty": {},
    "plain": {"bytes": 17, "words": 3},
    "every type": {"s": "x", "i": 1, "f": 1.5, "t": True, "n": None, "l": [1, [2, {"k": []}]], "o": {}},
    "order of keys": {"z": 1, "a": {"y": 1, "b": 2}},
    "large and small": {"big": 2**70, "small": -(2**70), "float": 1e300, "tiny": 5e-324},
    "float that is whole": {"x": 1.0},
    "minus zero": {"x": -0.0},
    "nul": {"a\0": "b\0c"},
    "several scripts": {"größe": "不可能 🙁 \u2028"},
    "escapes": {"'": '"\\"', "%s": "{} $1 :x ?"},
    "64 KiB": {"x": "y" * (64 * 1024 - len('{"x":""}'))},
}
DIFFERENCES: dict[str, Receipt] = {
    "another digest": Receipt("a", "0" * 64, {"n": 1, "l": [1, 2]}, "send", "1"),
    "another effect": Receipt("a", DIGEST, {"n": 1, "l": [1, 2]}, "print", "1"),
    "another effect version": Receipt("a", DIGEST, {"n": 1, "l": [1, 2]}, "send", "2"),
    "no effect version": Receipt("a", DIGEST, {"n": 1, "l": [1, 2]}, "send", None),
    "another value": Receipt("a", DIGEST, {"n": 2, "l": [1, 2]}, "send", "1"),
    "a float for a whole number": Receipt("a", DIGEST, {"n": 1.0, "l": [1, 2]}, "send", "1"),
    "a boolean for a number": Receipt("a", DIGEST, {"n": True, "l": [1, 2]}, "send", "1"),
    "a string for a number": Receipt("a", DIGEST, {"n": "1", "l": [1, 2]}, "send", "1"),
    "another order in an array": Receipt("a", DIGEST, {"n": 1, "l": [2, 1]}, "send", "1"),
    "a key more": Receipt("a", DIGEST, {"n": 1, "l": [1, 2], "x": None}, "send", "1"),
    "a key less": Receipt("a", DIGEST, {"n": 1}, "send", "1"),
}
STORED = Receipt("a", DIGEST, {"n": 1, "l": [1, 2]}, "send", "1")


class ReceiptContract(Contract):
    """What is published stays, and settles jobs."""

    # -- publish --

    @pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
    def test_a_receipt_comes_back_as_it_was_published(
        self, make_ledger: Callable[[], Ledger], outcome: dict[str, Any]
    ) -> None:
        enqueue(make_ledger(), "a", effect="send")
        given = Receipt("a", DIGEST, outcome, "send", "1.2")
        published = make_ledger().publish(given)
        assert not published.reused
        assert published.receipt.same_as(given)
        (found,) = make_ledger().receipts(["a"]).values()
        assert found.same_as(given)
        assert canonical(found.outcome) == canonical(outcome)
        again = make_ledger().publish(given)
        assert again.reused
        assert again.receipt.same_as(given)

    def test_a_receipt_of_the_default_effect_comes_back(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        given = Receipt("a", DIGEST, {"id-like": "a", "bytes": 9, "words": 3})
        ledger.publish(given)
        assert ledger.receipts(["a"])["a"].same_as(given)

    def test_the_order_of_keys_does_not_matter(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", effect="send")
        ledger.publish(Receipt("a", DIGEST, {"x": {"k": 1, "l": 2}, "y": 2}, "send", "1"))
        again = ledger.publish(Receipt("a", DIGEST, {"y": 2, "x": {"l": 2, "k": 1}}, "send", "1"))
        assert again.reused

    @pytest.mark.parametrize("other", DIFFERENCES.values(), ids=DIFFERENCES)
    def test_another_receipt_is_a_conflict_and_the_first_stays(self, ledger: Ledger, other: Receipt) -> None:
        enqueue(ledger, "a", effect="send")
        ledger.publish(STORED)
        with pytest.raises(ReceiptConflict, match="'a'"):
            ledger.publish(other)
        assert ledger.receipts(["a"])["a"].same_as(STORED)

    def test_receipts_are_read_as_many_as_are_there(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c")
        ledger.publish(receipt("a"))
        ledger.publish(receipt("c"))
        assert sorted(ledger.receipts(["c", "b", "nobody", "a"])) == ["a", "c"]
        assert ledger.receipts([]) == {}

    def test_a_receipt_changes_nothing_of_the_job(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        claim_one(ledger, 0)
        before = job_of(ledger)
        ledger.publish(receipt())
        assert job_of(ledger) == before

    def test_a_receipt_outlives_its_job(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        claim_one(ledger, 0)
        ledger.publish(receipt())
        ledger.cancel("a", now_ms=1)
        ledger.purge("a", now_ms=2)
        assert ledger.receipts(["a"])["a"].same_as(receipt())
        enqueue(ledger, "a", now_ms=3)
        assert ledger.publish(receipt()).reused

    def test_a_completion_does_not_look_for_a_receipt(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        assert ledger.complete("a", claim_one(ledger, 0).version, now_ms=1)

    # -- settle --

    def test_a_settlement_publishes_and_completes(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", now_ms=0)
        job = claim_one(ledger, 10)
        assert ledger.settle([settlement(job)], now_ms=20) == [
            Settled("a", 1, completed=True, reused=False, conflict=False)
        ]
        after = job_of(ledger)
        assert (after.state, after.version, after.lease_until_ms) == ("completed", 1, 0)
        if ledger.capabilities.keeps_claim_details:
            assert after.completed_at_ms == 20
        assert ledger.receipts(["a"])["a"].same_as(receipt())

    def test_nothing_to_settle_is_an_empty_list(self, ledger: Ledger) -> None:
        assert ledger.settle([]) == []

    def test_a_receipt_that_is_there_is_reused(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.publish(receipt())
        assert ledger.settle([settlement(job)], now_ms=1) == [
            Settled("a", 1, completed=True, reused=True, conflict=False)
        ]

    def test_a_receipt_stays_where_the_completion_is_refused(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        before = job_of(ledger)
        assert ledger.settle([settlement(job)], now_ms=job.lease_until_ms) == [
            Settled("a", 1, completed=False, reused=False, conflict=False)
        ]
        assert job_of(ledger) == before
        fresh = claim_one(ledger, job.lease_until_ms)
        assert ledger.settle([settlement(fresh)], now_ms=fresh.lease_until_ms - 1) == [
            Settled("a", 3, completed=True, reused=True, conflict=False)
        ]

    def test_a_conflict_leaves_the_job_and_the_stored_receipt(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.publish(receipt("a", words=7))
        before = job_of(ledger)
        assert ledger.settle([settlement(job)], now_ms=1) == [
            Settled("a", 1, completed=False, reused=False, conflict=True)
        ]
        assert job_of(ledger) == before
        assert ledger.receipts(["a"])["a"].same_as(receipt("a", words=7))

    def test_each_item_stands_for_itself_and_answers_come_in_order(self, ledger: Ledger) -> None:
        enqueue(ledger, "fine", "conflict", "refused", "reused", "also-fine")
        jobs = {job.id: job for job in claim(ledger, 0, limit=9)}
        ledger.publish(receipt("conflict", words=7))
        ledger.publish(receipt("reused"))
        order = ["conflict", "also-fine", "refused", "fine", "reused"]
        batch = [settlement(jobs[id]) for id in order]
        batch[2] = Settlement("refused", 9, batch[2].receipt)
        assert ledger.settle(batch, now_ms=1) == [
            Settled("conflict", 1, completed=False, reused=False, conflict=True),
            Settled("also-fine", 1, completed=True, reused=False, conflict=False),
            Settled("refused", 9, completed=False, reused=False, conflict=False),
            Settled("fine", 1, completed=True, reused=False, conflict=False),
            Settled("reused", 1, completed=True, reused=True, conflict=False),
        ]
        assert ledger.counts() == {"queued": 0, "running": 2, "completed": 3, "dead": 0, "held": 0}
        assert sorted(ledger.receipts(order)) == sorted(order)
        assert ledger.receipts(["conflict"])["conflict"].same_as(receipt("conflict", words=7))

    @pytest.mark.parametrize("refused", [[0], [1], [2], [0, 2], [0, 1, 2]])
    def test_a_refused_completion_leaves_the_others_alone(self, ledger: Ledger, refused: list[int]) -> None:
        """Every receipt is new here, so that a ledger may be tempted to settle the batch in one go."""
        enqueue(ledger, "a", "b", "c")
        jobs = claim(ledger, 0, limit=3)
        for place in refused:
            ledger.release(jobs[place].id, 1, now_ms=0)
        assert ledger.settle([settlement(job) for job in jobs], now_ms=1) == [
            Settled(job.id, 1, completed=place not in refused, reused=False, conflict=False)
            for place, job in enumerate(jobs)
        ]
        states = [job_of(ledger, job.id).state for job in jobs]
        assert states == ["queued" if place in refused else "completed" for place in range(3)]
        assert sorted(ledger.receipts(["a", "b", "c"])) == ["a", "b", "c"]

    @pytest.mark.parametrize("differs", [False, True])
    def test_of_two_settlements_of_one_job_the_first_counts(self, ledger: Ledger, differs: bool) -> None:
        enqueue(ledger, "a", "b")
        job, other = claim(ledger, 0, limit=2)
        second = settlement(job, words=4) if differs else settlement(job)
        first_a, first_b, second_a = ledger.settle([settlement(job), settlement(other), second], now_ms=1)
        assert first_a == Settled("a", 1, completed=True, reused=False, conflict=False)
        assert first_b == Settled("b", 1, completed=True, reused=False, conflict=False)
        assert second_a == Settled("a", 1, completed=False, reused=not differs, conflict=differs)
        assert ledger.receipts(["a"])["a"].same_as(receipt())

    def test_a_large_batch_settles(self, ledger: Ledger) -> None:
        names = [f"job-{n}" for n in range(700)]
        enqueue(ledger, *names)
        claimed = claim(ledger, 0, limit=700)
        settled = ledger.settle([settlement(job) for job in reversed(claimed)], now_ms=1)
        assert [item.id for item in settled] == names[::-1]
        assert all(item.completed for item in settled)
        assert len(ledger.receipts(names)) == 700

    # -- settle and claim in one --

    def request(self, **options: Any) -> ClaimRequest:
        """A claim as most tests make it."""
        return ClaimRequest("worker-1", **({"lease_ms": LEASE_MS, "max_attempts": 3} | options))

    def test_settle_and_claim_do_both(self, ledger: Ledger) -> None:
        enqueue(ledger, *"abcd")
        done = claim(ledger, 0, limit=2)
        settled, claimed = ledger.settle_and_claim(
            [settlement(job) for job in done], self.request(limit=5), now_ms=1
        )
        assert [(item.id, item.completed) for item in settled] == [("a", True), ("b", True)]
        assert [(job.id, job.version, job.lease_until_ms) for job in claimed] == [
            ("c", 1, 1 + LEASE_MS),
            ("d", 1, 1 + LEASE_MS),
        ]
        assert ledger.counts()["completed"] == 2

    def test_settle_and_claim_with_nothing_to_settle_claims(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        settled, claimed = ledger.settle_and_claim([], self.request(), now_ms=1)
        assert (settled, ids(claimed)) == ([], ["a"])

    def test_nothing_is_claimed_where_a_completion_is_refused(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b")
        job = claim_one(ledger, 0)
        settled, claimed = ledger.settle_and_claim([settlement(job)], self.request(), now_ms=LEASE_MS)
        assert settled == [Settled("a", 1, completed=False, reused=False, conflict=False)]
        assert claimed == []
        assert job_of(ledger, "b").state == "queued"
        assert ledger.receipts(["a"])["a"].same_as(receipt())

    def test_nothing_is_claimed_where_a_receipt_conflicts_but_the_other_items_are_settled(
        self, ledger: Ledger
    ) -> None:
        enqueue(ledger, "a", "b", "c")
        batch = [settlement(job) for job in claim(ledger, 0, limit=2)]
        ledger.publish(receipt("a", words=7))
        settled, claimed = ledger.settle_and_claim(batch, self.request(), now_ms=1)
        assert [(item.completed, item.conflict) for item in settled] == [(False, True), (True, False)]
        assert claimed == []
        assert [job_of(ledger, id).state for id in "abc"] == ["running", "completed", "queued"]

    def test_settle_and_claim_claim_as_the_request_says(self, ledger: Ledger) -> None:
        ledger.enqueue(
            [new("a", queue="mail"), new("b", effect="send"), new("c", queue="mail", effect="send")]
        )
        request = self.request(limit=9, queues=("mail",), effects=("send",), lease_ms=7)
        _, claimed = ledger.settle_and_claim([], request, now_ms=1)
        assert [(job.id, job.lease_until_ms) for job in claimed] == [("c", 8)]
