"""Pauses: no claim picks from a paused queue; running jobs finish, and reaping goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..ledgers.protocol import Ledger
from ..model.inputs import NewJob
from .base import (
    LEASE_MS,
    Contract,
    claim,
    claim_one,
    drain,
    enqueue,
    ids,
    job_of,
)


class PauseContract(Contract):
    """What a pause stops, and what it does not."""

    @pytest.fixture
    def scheduling(self, ledger: Ledger) -> Ledger:
        """A ledger that has schedules, and with them pauses."""
        if not ledger.capabilities.has_schedules:
            pytest.skip("has_schedules: this ledger has no pauses")
        return ledger

    def test_no_claim_picks_from_a_paused_queue(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "a", queue="mail", priority=9)
        enqueue(scheduling, "b")
        assert scheduling.pause("mail", now_ms=1)
        assert drain(scheduling, 2) == ["b"]
        assert claim(scheduling, 2, queues=["mail"]) == []
        assert job_of(scheduling).state == "queued"
        assert scheduling.resume("mail", now_ms=3)
        assert drain(scheduling, 4) == ["a"]

    def test_a_pause_holds_for_every_connection(
        self, scheduling: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        enqueue(scheduling, "a", queue="mail")
        other = make_ledger()
        assert other.pause("mail", now_ms=1)
        assert claim(scheduling, 2) == []
        assert scheduling.paused() == ["mail"]

    def test_pausing_twice_changes_nothing_and_says_so(self, scheduling: Ledger) -> None:
        assert scheduling.pause("mail", now_ms=1) is True
        assert scheduling.pause("mail", now_ms=2) is False
        assert scheduling.resume("mail", now_ms=3) is True
        assert scheduling.resume("mail", now_ms=4) is False

    def test_paused_queues_are_listed_by_name(self, scheduling: Ledger) -> None:
        assert scheduling.paused() == []
        for queue in ("post", "mail", "default"):
            scheduling.pause(queue, now_ms=1)
        assert scheduling.paused() == ["default", "mail", "post"]

    def test_jobs_can_be_enqueued_into_a_paused_queue(self, scheduling: Ledger) -> None:
        scheduling.pause("mail", now_ms=1)
        enqueue(scheduling, "a", queue="mail", now_ms=2)
        assert scheduling.counts(queue="mail")["queued"] == 1

    def test_running_jobs_finish(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "a", "b", "c")
        claim(scheduling, 0, limit=3)
        scheduling.pause("default", now_ms=1)
        assert scheduling.heartbeat("a", 1, extend_ms=9_000, now_ms=2)
        assert scheduling.complete("a", 1, now_ms=3)
        assert scheduling.retry("b", 1, run_at_ms=None, error="no", max_attempts=9, now_ms=3)
        assert scheduling.fail("c", 1, error="no", now_ms=3)

    def test_settling_goes_on(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "over", "lost", "used-up")
        enqueue(scheduling, "expired", expires_at_ms=500)
        for id in ("over", "lost", "used-up"):
            assert claim_one(scheduling, 0, max_attempts=9).id == id
        scheduling.begin("lost", 1, now_ms=1)
        scheduling.pause("default", now_ms=2)
        assert claim(scheduling, LEASE_MS, limit=9, max_attempts=9) == []
        assert {id: job_of(scheduling, id).state for id in ("over", "lost", "expired")} == {
            "over": "queued",
            "lost": "held",
            "expired": "dead",
        }
        assert claim(scheduling, LEASE_MS, limit=9, max_attempts=1) == []
        assert job_of(scheduling, "used-up").state == "dead"

    def test_a_sweep_goes_on(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "a", queue="mail", expires_at_ms=500)
        scheduling.pause("mail", now_ms=1)
        assert scheduling.sweep_expired(now_ms=500).expired == 1

    def test_the_limit_of_a_claim_does_not_count_paused_jobs(self, scheduling: Ledger) -> None:
        enqueue(scheduling, *"abcde", queue="mail", priority=1)
        enqueue(scheduling, "f", "g")
        scheduling.pause("mail", now_ms=1)
        assert ids(claim(scheduling, 2, limit=2)) == ["f", "g"]

    def test_however_many_jobs_of_a_paused_queue_are_ahead_a_claim_finds_the_others(
        self, scheduling: Ledger
    ) -> None:
        ahead = [NewJob(f"mail-{n}", "text", queue="mail", priority=9) for n in range(25)]
        scheduling.enqueue(ahead, now_ms=0)
        enqueue(scheduling, "a", "b")
        scheduling.pause("mail", now_ms=1)
        assert ids(claim(scheduling, 2)) == ["a"]
        assert scheduling.next_due_ms() == 0
        assert ids(claim(scheduling, 3)) == ["b"]
        assert scheduling.counts()["queued"] == 25

    def test_jobs_that_claims_passed_over_come_back_in_their_order(self, scheduling: Ledger) -> None:
        scheduling.enqueue(
            [
                NewJob("last", "text", queue="mail"),
                NewJob("delayed", "text", queue="mail", priority=9, run_at_ms=50),
                *(NewJob(f"mail-{n:02}", "text", queue="mail", priority=5) for n in range(12)),
            ],
            now_ms=0,
        )
        enqueue(scheduling, "other", priority=6)
        scheduling.pause("mail", now_ms=1)
        assert ids(claim(scheduling, 2)) == ["other"]
        assert claim(scheduling, 3) == []
        enqueue(scheduling, "between", priority=1, now_ms=3)
        assert scheduling.resume("mail", now_ms=4)
        assert scheduling.paused() == []
        taken = ids(claim(scheduling, 5, limit=20))
        assert taken == [*(f"mail-{n:02}" for n in range(12)), "between", "last"]
        assert scheduling.next_due_ms(queues=["mail"]) == 50
        assert ids(claim(scheduling, 50)) == ["delayed"]

    def test_a_queue_can_be_paused_again_after_its_jobs_were_passed_over(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "a", queue="mail", priority=9)
        enqueue(scheduling, "b", "c")
        scheduling.pause("mail", now_ms=1)
        assert ids(claim(scheduling, 2)) == ["b"]
        scheduling.resume("mail", now_ms=3)
        assert scheduling.pause("mail", now_ms=4)
        assert ids(claim(scheduling, 5)) == ["c"]
        scheduling.resume("mail", now_ms=6)
        assert ids(claim(scheduling, 7)) == ["a"]

    def test_jobs_that_were_passed_over_expire_and_can_be_cancelled(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "late", queue="mail", priority=9, expires_at_ms=10)
        enqueue(scheduling, "unwanted", queue="mail", priority=9)
        enqueue(scheduling, "a")
        scheduling.pause("mail", now_ms=1)
        assert ids(claim(scheduling, 2, limit=9)) == ["a"]
        assert scheduling.cancel("unwanted", now_ms=3)
        assert claim(scheduling, 10) == []
        assert scheduling.counts()["dead"] == 2
        scheduling.resume("mail", now_ms=11)
        assert claim(scheduling, 12) == []

    def test_paused_jobs_wake_nobody(self, scheduling: Ledger) -> None:
        """Else a worker would ask again and again for what it can not have."""
        enqueue(scheduling, "a", queue="mail")
        enqueue(scheduling, "b", run_at_ms=7_000)
        scheduling.pause("mail", now_ms=1)
        assert scheduling.next_due_ms() == 7_000
        assert scheduling.next_due_ms(queues=["mail"]) is None

    def test_the_leases_and_expiries_of_a_paused_queue_are_due_all_the_same(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "a", queue="mail")
        enqueue(scheduling, "b", queue="mail", expires_at_ms=9_000)
        claim_one(scheduling, 0)
        scheduling.pause("mail", now_ms=1)
        assert scheduling.next_due_ms() == LEASE_MS
        scheduling.complete("a", 1, now_ms=2)
        assert scheduling.next_due_ms() == 9_000

    def test_pauses_are_recorded(self, scheduling: Ledger) -> None:
        scheduling.pause("mail", actor="me", reason="upgrade", now_ms=1)
        scheduling.pause("mail", actor="you", now_ms=2)
        scheduling.resume("mail", actor="me", reason="done", now_ms=3)
        scheduling.resume("mail", actor="you", now_ms=4)
        entries = [
            (entry.at_ms, entry.action, entry.id, entry.actor, entry.reason) for entry in scheduling.audit()
        ]
        assert entries == [(1, "pause", "mail", "me", "upgrade"), (3, "resume", "mail", "me", "done")]
