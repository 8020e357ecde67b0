"""Claims: what is ready, in which order, under which lease, and for whom."""

from __future__ import annotations

import pytest

from ..errors import InvalidInput
from ..ledgers.protocol import Ledger
from ..model.job import Job, Stamps
from .base import (
    LEASE_MS,
    Contract,
    claim,
    claim_one,
    drain,
    enqueue,
    ids,
    job_of,
    new,
)
from .model_store import as_kept


class ClaimContract(Contract):
    """What a claim hands out."""

    def test_a_claim_takes_the_job_under_a_fence_and_a_lease(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", effect="send", now_ms=1_000)
        job = claim_one(ledger, 2_000, claimant="me", lease_ms=500)
        want = Job(
            id="a",
            state="running",
            version=1,
            lease_until_ms=2_500,
            attempts=1,
            effect="send",
            enqueued_at_ms=1_000,
            claimant="me",
            claimed_at_ms=2_000,
            first_claimed_at_ms=2_000,
        )
        assert ledger.get_job("a") == as_kept(want, ledger.capabilities)
        assert as_kept(job, ledger.capabilities) == as_kept(want, ledger.capabilities)

    def test_nothing_ready_is_an_empty_list(self, ledger: Ledger) -> None:
        assert claim(ledger, 0, limit=10) == []

    def test_a_job_is_handed_out_once(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        assert ids(claim(ledger, 0, limit=10)) == ["a"]
        assert claim(ledger, 0, limit=10) == []

    def test_a_claim_takes_no_more_than_its_limit(self, ledger: Ledger) -> None:
        enqueue(ledger, *"abcde")
        assert ids(claim(ledger, 0, limit=3)) == ["a", "b", "c"]
        assert ids(claim(ledger, 0, limit=3)) == ["d", "e"]
        assert ledger.counts()["running"] == 5

    def test_a_claim_of_many_takes_many(self, ledger: Ledger) -> None:
        expected = [f"job-{n}" for n in range(1_500)]
        enqueue(ledger, *expected)
        assert ids(claim(ledger, 0, limit=10_000)) == expected

    @pytest.mark.parametrize(
        "wrong", [{"limit": 0}, {"limit": 10_001}, {"limit": -1}, {"lease_ms": 0}, {"max_attempts": 0}]
    )
    def test_a_claim_of_nonsense_is_refused(self, ledger: Ledger, wrong: dict[str, int]) -> None:
        enqueue(ledger, "a", expires_at_ms=5)
        with pytest.raises(InvalidInput):
            claim(ledger, 5, **wrong)
        assert job_of(ledger).state == "queued"

    # -- ready --

    @pytest.mark.parametrize(("offset_ms", "taken"), [(-1, 0), (0, 1), (+1, 1)])
    def test_a_delayed_job_is_ready_at_its_instant(self, ledger: Ledger, offset_ms: int, taken: int) -> None:
        enqueue(ledger, "a", run_at_ms=5_000)
        assert len(claim(ledger, 5_000 + offset_ms)) == taken

    def test_a_job_without_run_at_is_ready_whatever_the_clock_says(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", now_ms=5_000)
        assert ids(claim(ledger, 0)) == ["a"]

    def test_a_run_at_of_zero_is_ready(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=0)
        assert ids(claim(ledger, 0)) == ["a"]

    # -- order --

    def test_jobs_come_in_the_order_of_enqueue(self, ledger: Ledger) -> None:
        enqueue(ledger, *"zebra")
        assert drain(ledger, 0) == list("zebra")

    def test_the_order_holds_over_requests_at_one_instant(self, ledger: Ledger) -> None:
        for id in "zyxcba":
            enqueue(ledger, id, now_ms=7)
        assert drain(ledger, 7) == list("zyxcba")

    def test_higher_priorities_come_first(self, ledger: Ledger) -> None:
        ledger.enqueue(
            [new(f"p{n}", priority=priority) for n, priority in enumerate((0, -1, 5, 5, 2**31 - 1))]
        )
        assert drain(ledger, 0) == ["p4", "p2", "p3", "p0", "p1"]

    def test_of_one_priority_the_earlier_run_at_comes_first(self, ledger: Ledger) -> None:
        ledger.enqueue([new("late", run_at_ms=30), new("early", run_at_ms=10), new("between", run_at_ms=20)])
        assert drain(ledger, 50) == ["early", "between", "late"]

    def test_of_one_ready_time_the_order_of_enqueue_decides(self, ledger: Ledger) -> None:
        for id in "zya":
            enqueue(ledger, id, run_at_ms=10)
        assert drain(ledger, 50) == ["z", "y", "a"]

    def test_a_job_without_run_at_is_ready_since_its_enqueue(self, ledger: Ledger) -> None:
        enqueue(ledger, "before", now_ms=5, run_at_ms=100)
        enqueue(ledger, "plain", now_ms=200)
        enqueue(ledger, "after", now_ms=6, run_at_ms=300)
        want = ["before", "plain", "after"]
        if not ledger.capabilities.keeps_enqueue_time:
            want = ["plain", "before", "after"]
        assert drain(ledger, 400) == want

    def test_where_the_clock_went_back_the_ready_time_decides(self, ledger: Ledger) -> None:
        enqueue(ledger, "first", now_ms=200)
        enqueue(ledger, "second", now_ms=100)
        by_time = ledger.capabilities.keeps_enqueue_time
        assert drain(ledger, 0) == (["second", "first"] if by_time else ["first", "second"])

    def test_a_batch_comes_in_the_order_of_claims(self, ledger: Ledger) -> None:
        ledger.enqueue(
            [
                new("d", run_at_ms=40),
                new("c", run_at_ms=30),
                new("b", priority=1, run_at_ms=90),
                new("a", priority=2, run_at_ms=95),
                new("e", priority=-1, run_at_ms=1),
                new("f", priority=-1, run_at_ms=1),
            ]
        )
        assert ids(claim(ledger, 100, limit=6)) == ["a", "b", "c", "d", "e", "f"]

    def test_a_reclaimed_job_keeps_its_place(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", now_ms=0)
        assert claim_one(ledger, 0).id == "a"
        assert drain(ledger, LEASE_MS) == ["a", "b"]

    def test_a_redriven_job_keeps_its_place(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", now_ms=0)
        ledger.cancel("a", now_ms=1)
        ledger.redrive("a", now_ms=2)
        assert drain(ledger, 3) == ["a", "b"]

    # -- queues and effects --

    def test_a_claim_takes_only_from_its_queues(self, ledger: Ledger) -> None:
        for id, queue in (("a", "mail"), ("b", "default"), ("c", "print")):
            enqueue(ledger, id, queue=queue)
        assert drain(ledger, 0, queues=["mail", "print"]) == ["a", "c"]
        assert drain(ledger, 0, queues=["nothing"]) == []
        assert drain(ledger, 0, queues=None) == ["b"]

    def test_a_claim_takes_only_its_effects(self, ledger: Ledger) -> None:
        for id, effect in (("a", "send"), ("b", "count"), ("c", "print")):
            enqueue(ledger, id, effect=effect)
        assert drain(ledger, 0, effects=["send", "print"]) == ["a", "c"]
        assert drain(ledger, 0, effects=["nothing"]) == []
        assert drain(ledger, 0, effects=None) == ["b"]

    def test_a_claim_takes_only_what_both_name(self, ledger: Ledger) -> None:
        for id, queue, effect in (
            ("a", "mail", "send"),
            ("b", "mail", "print"),
            ("c", "post", "send"),
            ("d", "post", "print"),
        ):
            enqueue(ledger, id, queue=queue, effect=effect)
        assert drain(ledger, 0, queues=["mail"], effects=["send"]) == ["a"]
        assert drain(ledger, 0, queues=["post", "mail"], effects=["print"]) == ["b", "d"]

    def test_the_order_holds_across_queues_and_effects(self, ledger: Ledger) -> None:
        for n, (queue, effect) in enumerate(
            [("q2", "e1"), ("q1", "e2"), ("q2", "e2"), ("q1", "e1"), ("q3", "e1"), ("q1", "e3")]
        ):
            enqueue(ledger, f"n{n}", queue=queue, effect=effect, priority=n % 2)
        want = ["n1", "n3", "n0", "n2"]
        assert ids(claim(ledger, 0, limit=9, queues=["q1", "q2"], effects=["e1", "e2"])) == want

    def test_no_queues_or_no_effects_take_nothing(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        assert claim(ledger, 0, queues=[]) == []
        assert claim(ledger, 0, effects=[]) == []

    def test_a_queue_named_twice_hands_out_once(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b")
        assert ids(claim(ledger, 0, limit=9, queues=["default", "default"], effects=["count"] * 2)) == [
            "a",
            "b",
        ]

    # -- stamps --

    def test_the_lease_is_the_stamp_where_there_is_one(self, ledger: Ledger) -> None:
        enqueue(ledger, "stamped", stamps=Stamps(visibility_timeout_s=0.25))
        enqueue(ledger, "plain")
        leases = {job.id: job.lease_until_ms for job in claim(ledger, 1_000, limit=2, lease_ms=700)}
        assert leases == {"stamped": 1_250, "plain": 1_700}

    @pytest.mark.parametrize(("own", "workers", "taken"), [(2, 1, 2), (1, 9, 1), (None, 2, 2), (None, 1, 1)])
    def test_the_limit_of_attempts_is_the_stamp_where_there_is_one(
        self, ledger: Ledger, own: int | None, workers: int, taken: int
    ) -> None:
        enqueue(ledger, "a", stamps=Stamps(max_attempts=own))
        claims = [claim(ledger, LEASE_MS * n, max_attempts=workers) for n in range(4)]
        assert sum(map(len, claims)) == taken
        assert job_of(ledger).state == "dead"
        assert job_of(ledger).last_error == "max attempts exceeded"

    def test_stamps_never_change(self, ledger: Ledger) -> None:
        stamps = Stamps(0.5, 9, 2.5, 60)
        enqueue(ledger, "a", stamps=stamps)
        claimed = claim_one(ledger, 0, lease_ms=9_000, max_attempts=1)
        assert claimed.stamps == stamps
        ledger.heartbeat("a", claimed.version, extend_ms=9_000, now_ms=1)
        assert job_of(ledger).stamps == stamps
        ledger.retry("a", claimed.version, run_at_ms=5, error="no", max_attempts=1, now_ms=2)
        assert job_of(ledger).stamps == stamps
        again = claim_one(ledger, 5)
        assert again.stamps == stamps
        ledger.fail("a", again.version, error="no", now_ms=6)
        assert job_of(ledger).stamps == stamps
        ledger.redrive("a", now_ms=7)
        assert job_of(ledger).stamps == stamps

    def test_attempts_and_versions_count_every_claim(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        seen = [claim_one(ledger, LEASE_MS * n, max_attempts=9) for n in range(3)]
        assert [job.attempts for job in seen] == [1, 2, 3]
        assert [job.version for job in seen] == [1, 3, 5]

    def test_the_first_claim_is_remembered(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", effect="send")
        first = claim_one(ledger, 100, claimant="one")
        second = claim_one(ledger, 100 + LEASE_MS, claimant="two")
        assert (first.first_claimed_at_ms, second.first_claimed_at_ms) == (100, 100)
        want = second._replace(claimant="two", claimed_at_ms=100 + LEASE_MS)
        assert job_of(ledger) == as_kept(want, ledger.capabilities)

    def test_a_claimant_is_no_fence(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        old = claim_one(ledger, 0, claimant="same name")
        fresh = claim_one(ledger, LEASE_MS, claimant="same name")
        assert not ledger.complete("a", old.version, now_ms=LEASE_MS + 1)
        assert ledger.complete("a", fresh.version, now_ms=LEASE_MS + 1)
