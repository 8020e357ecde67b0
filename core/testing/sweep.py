"""The sweep: what has expired is buried, live leases or not; what was kept long enough is purged."""

from __future__ import annotations

import pytest

from ..ledgers.protocol import Ledger
from ..model.job import Stamps
from ..model.records import Swept
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
)


class SweepContract(Contract):
    """What a sweep moves, and what it leaves."""

    @pytest.mark.parametrize(("offset_ms", "passed"), [(-1, False), (0, True), (+1, True)])
    def test_a_sweep_buries_queued_and_running_jobs_at_their_expiry(
        self, ledger: Ledger, offset_ms: int, passed: bool
    ) -> None:
        enqueue(ledger, "running", "queued", expires_at_ms=500)
        enqueue(ledger, "delayed", expires_at_ms=500, run_at_ms=9_000)
        enqueue(ledger, "fresh")
        version = claim_one(ledger, 0).version
        assert ledger.sweep_expired(now_ms=500 + offset_ms) == Swept(expired=3 if passed else 0, purged=0)
        for id in ("queued", "delayed", "running"):
            job = job_of(ledger, id)
            if passed:
                assert (job.state, job.last_error, job.died_at_ms) == ("dead", "expired", 500 + offset_ms)
                assert job.lease_until_ms == 0
            else:
                assert job.state == ("running" if id == "running" else "queued")
        assert ledger.complete("running", version, now_ms=500 + offset_ms) is not passed
        assert job_of(ledger, "fresh").state == "queued"

    def test_no_row_is_ever_stuck(self, ledger: Ledger) -> None:
        """Running, the lease ended, expired, and the attempts used up: one sweep buries it."""
        enqueue(ledger, "a", expires_at_ms=500, stamps=Stamps(max_attempts=1))
        claim_one(ledger, 0, lease_ms=400)
        assert ledger.sweep_expired(now_ms=600) == Swept(expired=1, purged=0)
        assert (job_of(ledger).state, job_of(ledger).last_error) == ("dead", "expired")

    def test_no_row_is_stuck_for_a_claim_either(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", expires_at_ms=500, stamps=Stamps(max_attempts=1))
        ledger.begin("a", claim_one(ledger, 0, lease_ms=400).version, now_ms=1)
        claim(ledger, 600)
        assert (job_of(ledger).state, job_of(ledger).last_error) == ("dead", "expired")

    def test_a_sweep_does_not_settle_leases(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        claim_one(ledger, 0, max_attempts=1)
        assert ledger.sweep_expired(now_ms=LEASE_MS * 9) == Swept(expired=0, purged=0)
        assert job_of(ledger).state == "running"

    def test_a_second_sweep_finds_nothing(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", expires_at_ms=500)
        assert ledger.sweep_expired(now_ms=500).expired == 1
        assert ledger.sweep_expired(now_ms=500) == Swept(expired=0, purged=0)

    def test_a_sweep_of_a_queue_leaves_the_others(self, ledger: Ledger) -> None:
        retention = Stamps(dead_letter_retention_s=0)
        for queue in ("mail", "post"):
            enqueue(ledger, f"{queue}-live", queue=queue, expires_at_ms=500)
            enqueue(ledger, f"{queue}-dead", queue=queue, stamps=retention)
            ledger.cancel(f"{queue}-dead", now_ms=1)
        assert ledger.sweep_expired(queue="mail", now_ms=500) == Swept(expired=1, purged=1)
        assert ledger.get_job("mail-dead") is None
        assert job_of(ledger, "post-live").state == "queued"
        assert job_of(ledger, "post-dead").state == "dead"
        assert ledger.sweep_expired(queue="nothing", now_ms=500) == Swept(expired=0, purged=0)
        assert ledger.sweep_expired(now_ms=500) == Swept(expired=1, purged=1)

    # -- retention --

    @pytest.mark.parametrize(("offset_ms", "passed"), [(-1, False), (0, True), (+1, True)])
    def test_a_dead_job_is_purged_when_its_retention_ends(
        self, ledger: Ledger, offset_ms: int, passed: bool
    ) -> None:
        enqueue(ledger, "a", stamps=Stamps(dead_letter_retention_s=2))
        ledger.cancel("a", now_ms=100)
        assert ledger.sweep_expired(now_ms=2_100 + offset_ms) == Swept(expired=0, purged=int(passed))
        assert (ledger.get_job("a") is None) is passed

    def test_without_a_retention_a_dead_job_is_kept(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        ledger.cancel("a", now_ms=0)
        assert ledger.sweep_expired(now_ms=2**50).purged == 0
        assert job_of(ledger).state == "dead"

    def test_only_the_dead_are_purged(self, ledger: Ledger) -> None:
        enqueue(ledger, "done", "held", "running", "queued", stamps=Stamps(dead_letter_retention_s=0))
        for id in ("done", "held", "running"):
            assert claim_one(ledger, 0, max_attempts=9).id == id
        ledger.complete("done", 1, now_ms=1)
        ledger.hold("held", 1, error="look", now_ms=1)
        assert ledger.sweep_expired(now_ms=9_000) == Swept(expired=0, purged=0)
        assert sum(ledger.counts().values()) == 4

    def test_retention_comes_before_expiry(self, ledger: Ledger) -> None:
        """What a sweep buries is not purged by the same sweep, however short it is kept."""
        enqueue(ledger, "a", expires_at_ms=500, stamps=Stamps(dead_letter_retention_s=0))
        assert ledger.sweep_expired(now_ms=500) == Swept(expired=1, purged=0)
        assert job_of(ledger).state == "dead"
        assert ledger.sweep_expired(now_ms=500) == Swept(expired=0, purged=1)
        assert ledger.get_job("a") is None

    def test_a_redriven_job_is_not_purged(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", stamps=Stamps(dead_letter_retention_s=1))
        ledger.cancel("a", now_ms=0)
        ledger.redrive("a", now_ms=5)
        assert ledger.sweep_expired(now_ms=9_000).purged == 0
        ledger.cancel("a", now_ms=9_000)
        assert ledger.sweep_expired(now_ms=9_999).purged == 0
        assert ledger.sweep_expired(now_ms=10_000).purged == 1

    def test_thousands_are_swept_in_one_call(self, ledger: Ledger) -> None:
        ledger.enqueue([new(f"old-{n}", stamps=Stamps(dead_letter_retention_s=0)) for n in range(1_100)])
        assert len(claim(ledger, 0, limit=1_100, lease_ms=1)) == 1_100
        for _ in range(2):
            assert claim(ledger, 1, max_attempts=1) == []
        assert ledger.counts()["dead"] == 1_100
        ledger.enqueue([new(f"new-{n}", expires_at_ms=5) for n in range(2_100)], now_ms=2)
        assert ledger.sweep_expired(now_ms=5) == Swept(expired=2_100, purged=1_100)
        assert ledger.counts() == {"queued": 0, "running": 0, "completed": 0, "dead": 2_100, "held": 0}

    # -- what a purge leaves --

    @pytest.mark.parametrize("by", ["sweep", "operator"])
    def test_a_purge_keeps_the_input_the_receipt_and_the_last_version(self, ledger: Ledger, by: str) -> None:
        enqueue(ledger, "a", "b", stamps=Stamps(dead_letter_retention_s=0))
        job = claim_one(ledger, 0)
        ledger.publish(receipt())
        ledger.fail("a", job.version, error="no", now_ms=1)
        assert ledger.purge("a", now_ms=1) if by == "operator" else ledger.sweep_expired(now_ms=1).purged == 1
        assert ledger.get_job("a") is None
        assert ids(ledger.jobs().jobs) == ["b"]
        assert ledger.counts()["dead"] == 0
        assert ledger.read_inputs(["a"])["a"].text == "text of a"
        assert ledger.receipts(["a"])["a"].same_as(receipt())
        rows = {row.id: row for row in ledger.export_rows().rows}
        assert (rows["a"].job, rows["a"].purged_version) == (None, 2)

    @pytest.mark.parametrize("by", ["sweep", "operator"])
    def test_a_purged_id_is_unknown_to_every_verb(self, ledger: Ledger, by: str) -> None:
        enqueue(ledger, "a", stamps=Stamps(dead_letter_retention_s=0))
        ledger.cancel("a", now_ms=1)
        assert ledger.purge("a", now_ms=1) if by == "operator" else ledger.sweep_expired(now_ms=1).purged == 1
        assert not ledger.redrive("a", now_ms=2)
        assert not ledger.cancel("a", now_ms=2)
        assert not ledger.purge("a", now_ms=2)
        assert not ledger.resolve("a", decision="retry", now_ms=2)
        assert claim(ledger, 2) == []
        assert ledger.next_due_ms() is None

    def test_a_manual_purge_does_not_wait_for_the_retention(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", stamps=Stamps(dead_letter_retention_s=9_000))
        ledger.cancel("a", now_ms=1)
        assert ledger.purge("a", now_ms=2)
        assert ledger.get_job("a") is None
