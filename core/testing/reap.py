"""What a claim reaps first: expire, lost, exhausted, reclaim; for what it serves, and never more than 1,000."""

from __future__ import annotations

import pytest

from ..ledgers.protocol import Ledger
from ..model.inputs import Input
from ..model.job import REAP_LIMIT, Job, Stamps
from ..model.query import JobQuery
from ..model.records import Row
from .base import (
    LEASE_MS,
    Contract,
    claim,
    claim_one,
    enqueue,
    ids,
    job_of,
    new,
    reap_passed,
    receipt,
    settlement,
)

BOUNDARY = [(-1, False), (0, True), (+1, True)]
"""The boundary instant belongs to the next owner."""


class ReapContract(Contract):
    """What time does to a job, once a claim looks."""

    # -- reclaim --

    @pytest.mark.parametrize(("offset_ms", "passed"), BOUNDARY)
    def test_a_lease_that_has_ended_is_reclaimed(self, ledger: Ledger, offset_ms: int, passed: bool) -> None:
        enqueue(ledger, "a")
        first = claim_one(ledger, 0)
        claimed = claim(ledger, first.lease_until_ms + offset_ms)
        assert [(job.id, job.version, job.attempts) for job in claimed] == ([("a", 3, 2)] if passed else [])

    def test_a_reclaimed_job_is_ready_at_once(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=500)
        claim_one(ledger, 500)
        reap_passed(ledger, 500 + LEASE_MS)
        job = job_of(ledger)
        assert (job.state, job.version, job.attempts) == ("queued", 2, 1)
        assert (job.run_at_ms, job.lease_until_ms, job.last_error) == (None, 0, None)
        assert claim_one(ledger, 0).id == "a"

    def test_a_reclaim_eats_an_attempt(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        attempts = [claim_one(ledger, LEASE_MS * n, max_attempts=3).attempts for n in range(3)]
        assert attempts == [1, 2, 3]
        assert claim(ledger, LEASE_MS * 3, max_attempts=3) == []
        assert job_of(ledger).state == "dead"

    # -- exhausted --

    def test_used_up_attempts_are_buried_by_the_claim(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b")
        claim_one(ledger, 0, max_attempts=1)
        assert ids(claim(ledger, LEASE_MS, limit=9, max_attempts=1)) == ["b"]
        job = job_of(ledger)
        assert (job.state, job.version, job.attempts, job.lease_until_ms) == ("dead", 2, 1, 0)
        assert (job.last_error, job.died_at_ms) == ("max attempts exceeded", LEASE_MS)

    def test_the_error_of_used_up_attempts_can_be_given(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        claim_one(ledger, 0, max_attempts=1)
        claim(ledger, LEASE_MS, max_attempts=1, exhausted_error="tried enough")
        assert job_of(ledger).last_error == "tried enough"

    @pytest.mark.parametrize(("offset_ms", "passed"), BOUNDARY)
    def test_the_last_valid_claim_is_not_swept_away(
        self, ledger: Ledger, offset_ms: int, passed: bool
    ) -> None:
        enqueue(ledger, "a")
        last = claim_one(ledger, 0, max_attempts=1)
        at_ms = last.lease_until_ms + offset_ms
        claim(ledger, at_ms, max_attempts=1)
        assert job_of(ledger).state == ("dead" if passed else "running")
        assert ledger.complete("a", last.version, now_ms=at_ms) is not passed

    def test_a_queued_job_with_used_up_attempts_is_buried(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        version = claim_one(ledger, 0, max_attempts=9).version
        ledger.retry("a", version, run_at_ms=None, error="once more", max_attempts=9, now_ms=1)
        assert claim(ledger, 2, max_attempts=1) == []
        job = job_of(ledger)
        assert (job.state, job.version, job.last_error) == ("dead", 3, "max attempts exceeded")
        assert job.died_at_ms == 2

    def test_a_delayed_job_with_used_up_attempts_does_not_wait_for_its_run_at(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        version = claim_one(ledger, 0).version
        ledger.retry("a", version, run_at_ms=9_000, error="later", max_attempts=9, now_ms=1)
        claim(ledger, 2, max_attempts=1)
        assert job_of(ledger).state == "dead"

    def test_a_job_that_has_attempts_left_by_its_stamp_is_not_buried(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", stamps=Stamps(max_attempts=2))
        claim_one(ledger, 0, max_attempts=1)
        assert claim_one(ledger, LEASE_MS, max_attempts=1).attempts == 2

    # -- lost --

    @pytest.mark.parametrize(("offset_ms", "passed"), BOUNDARY)
    def test_an_attempt_that_started_and_was_lost_is_held(
        self, ledger: Ledger, offset_ms: int, passed: bool
    ) -> None:
        enqueue(ledger, "a")
        first = claim_one(ledger, 0)
        ledger.begin("a", first.version, now_ms=1)
        assert claim(ledger, first.lease_until_ms + offset_ms) == []
        job = job_of(ledger)
        assert job.state == ("held" if passed else "running")
        assert job.last_error == ("attempt lost after its start" if passed else None)
        assert (job.version, job.attempts) == (2 if passed else 1, 1)
        assert job.started_at_ms == 1

    def test_an_attempt_that_left_its_receipt_is_not_lost_but_handed_back(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", run_at_ms=3)
        first = claim_one(ledger, 3, max_attempts=1)
        ledger.begin("a", first.version, now_ms=4)
        ledger.publish(receipt())
        reap_passed(ledger, first.lease_until_ms, max_attempts=1)
        job = job_of(ledger)
        assert (job.state, job.version, job.attempts) == ("queued", 2, 0)
        assert (job.started_at_ms, job.run_at_ms, job.lease_until_ms, job.last_error) == (None, None, 0, None)

    def test_a_receipt_lets_the_next_claim_complete_what_its_owner_did_not(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        for n in range(3):
            last = claim_one(ledger, LEASE_MS * n, max_attempts=1)
            ledger.begin("a", last.version, now_ms=LEASE_MS * n)
            ledger.publish(receipt())
        (settled,) = ledger.settle([settlement(last)], now_ms=LEASE_MS * 3 - 1)
        assert (settled.completed, settled.reused) == (True, True)
        assert job_of(ledger).state == "completed"

    @pytest.mark.parametrize("other", ["receipt of another", "no start"])
    def test_a_receipt_helps_only_the_job_that_had_started_with_it(self, ledger: Ledger, other: str) -> None:
        enqueue(ledger, "a", "b")
        first, _ = claim(ledger, 0, limit=2, max_attempts=1)
        if other == "no start":
            ledger.publish(receipt())
        else:
            ledger.begin("a", first.version, now_ms=1)
            ledger.publish(receipt("b"))
        claim(ledger, LEASE_MS, max_attempts=1)
        assert job_of(ledger).state == ("dead" if other == "no start" else "held")

    def test_the_error_of_a_lost_attempt_can_be_given(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        ledger.begin("a", claim_one(ledger, 0).version, now_ms=1)
        claim(ledger, LEASE_MS, lost_error="who knows")
        assert job_of(ledger).last_error == "who knows"

    # -- expire --

    @pytest.mark.parametrize(("offset_ms", "passed"), BOUNDARY)
    @pytest.mark.parametrize("state", ["queued", "delayed", "running", "started"])
    def test_what_has_expired_is_buried(
        self, ledger: Ledger, state: str, offset_ms: int, passed: bool
    ) -> None:
        enqueue(ledger, "a", expires_at_ms=500, run_at_ms=800 if state == "delayed" else None)
        if state in ("running", "started"):
            version = claim_one(ledger, 0).version
            if state == "started":
                ledger.begin("a", version, now_ms=1)
        before = job_of(ledger)
        reap_passed(ledger, 500 + offset_ms)
        job = job_of(ledger)
        if not passed:
            assert job == before
            return
        assert (job.state, job.last_error, job.died_at_ms) == ("dead", "expired", 500 + offset_ms)
        assert (job.version, job.attempts) == (before.version + 1, before.attempts)
        assert job.lease_until_ms == 0

    def test_the_error_of_an_expiry_can_be_given(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", expires_at_ms=5)
        claim(ledger, 5, expired_error="too late")
        assert job_of(ledger).last_error == "too late"

    def test_an_expiry_refuses_the_holder_once_it_is_applied(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", expires_at_ms=500)
        version = claim_one(ledger, 0).version
        assert ledger.heartbeat("a", version, now_ms=501), "nothing has applied the expiry yet"
        claim(ledger, 502)
        assert not ledger.complete("a", version, now_ms=503)
        assert job_of(ledger).state == "dead"

    def test_a_completion_before_the_expiry_is_applied_counts(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", expires_at_ms=500)
        version = claim_one(ledger, 0).version
        assert ledger.complete("a", version, now_ms=600)
        claim(ledger, 700)
        assert ledger.sweep_expired(now_ms=700).expired == 0
        assert job_of(ledger).state == "completed"

    # -- the first that fits --

    @pytest.mark.parametrize(
        ("expires", "started", "used_up", "end", "error"),
        [
            (True, True, True, "dead", "expired"),
            (True, True, False, "dead", "expired"),
            (True, False, True, "dead", "expired"),
            (True, False, False, "dead", "expired"),
            (False, True, True, "held", "attempt lost after its start"),
            (False, True, False, "held", "attempt lost after its start"),
            (False, False, True, "dead", "max attempts exceeded"),
            (False, False, False, "running", None),
        ],
    )
    def test_the_first_that_fits_is_done(
        self, ledger: Ledger, expires: bool, started: bool, used_up: bool, end: str, error: str | None
    ) -> None:
        enqueue(ledger, "a", expires_at_ms=900 if expires else None)
        version = claim_one(ledger, 0).version
        if started:
            ledger.begin("a", version, now_ms=1)
        claim(ledger, LEASE_MS, max_attempts=1 if used_up else 2)
        job = job_of(ledger)
        assert (job.state, job.last_error) == (end, error)

    # -- for what the claim serves --

    @pytest.mark.parametrize("serves", [{"queues": ["other"]}, {"effects": ["other"]}])
    @pytest.mark.parametrize("what", ["expired", "lost", "exhausted", "lapsed"])
    def test_a_claim_settles_only_what_it_serves(
        self, ledger: Ledger, what: str, serves: dict[str, list[str]]
    ) -> None:
        enqueue(ledger, "a", queue="mail", effect="send", expires_at_ms=900 if what == "expired" else None)
        version = claim_one(ledger, 0).version
        if what == "lost":
            ledger.begin("a", version, now_ms=1)
        before = job_of(ledger)
        attempts = 1 if what == "exhausted" else 2
        claim(ledger, LEASE_MS, max_attempts=attempts, **serves)
        assert job_of(ledger) == before
        claim(ledger, LEASE_MS, max_attempts=attempts, queues=["mail"], effects=["send"])
        assert job_of(ledger).version > before.version

    # -- never more than 1,000 at once, those whose time passed first in front --

    def test_a_claim_reclaims_a_thousand_leases_at_most_the_first_to_end_in_front(
        self, ledger: Ledger
    ) -> None:
        names = [f"job-{n}" for n in range(REAP_LIMIT + 5)]
        enqueue(ledger, *names)
        last_five = ids(claim(ledger, 0, limit=5, lease_ms=200))
        claim(ledger, 0, limit=REAP_LIMIT, lease_ms=100)
        reap_passed(ledger, 200)
        assert ids(ledger.jobs(JobQuery(states=["running"])).jobs) == last_five
        assert ledger.counts()["queued"] == REAP_LIMIT
        reap_passed(ledger, 200)
        assert ledger.counts()["queued"] == REAP_LIMIT + 5

    def test_a_claim_expires_a_thousand_jobs_at_most_the_first_to_expire_in_front(
        self, ledger: Ledger
    ) -> None:
        ledger.enqueue([new(f"job-{n}", expires_at_ms=200 if n < 5 else 100) for n in range(REAP_LIMIT + 5)])
        reap_passed(ledger, 200)
        assert ids(ledger.jobs(JobQuery(states=["queued"])).jobs) == [f"job-{n}" for n in range(5)]
        assert ledger.counts()["dead"] == REAP_LIMIT
        reap_passed(ledger, 200)
        assert ledger.counts()["dead"] == REAP_LIMIT + 5

    def test_a_claim_settles_a_thousand_jobs_at_most_of_all_kinds_together(self, ledger: Ledger) -> None:
        """Leases that ended first are settled before expiries that passed later, whatever their number."""
        half = REAP_LIMIT // 2
        ledger.enqueue([new(f"late-{n}", expires_at_ms=300) for n in range(half + 5)], now_ms=0)
        ledger.enqueue([new(f"over-{n}", priority=1) for n in range(half)], now_ms=0)
        claim(ledger, 0, limit=half, lease_ms=200)
        reap_passed(ledger, 300)
        assert ledger.counts()["running"] == 0
        assert ledger.counts()["dead"] == half
        reap_passed(ledger, 300)
        assert ledger.counts()["dead"] == half + 5

    def test_used_up_attempts_beyond_the_thousand_are_not_picked_either(self, ledger: Ledger) -> None:
        ledger.import_rows(
            [
                Row(f"job-{n}", Job(f"job-{n}", version=2, attempts=1), None, Input(f"job-{n}", "x"), None)
                for n in range(REAP_LIMIT + 5)
            ]
        )
        assert claim(ledger, 0, limit=10, max_attempts=1) == []
        assert ledger.counts()["dead"] == REAP_LIMIT
        assert claim(ledger, 0, limit=10, max_attempts=1) == []
        assert ledger.counts()["dead"] == REAP_LIMIT + 5

    def test_a_claim_picks_after_it_has_settled(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", priority=1)
        enqueue(ledger, "b")
        claim_one(ledger, 0)
        assert ids(claim(ledger, LEASE_MS, limit=9)) == ["a", "b"]
