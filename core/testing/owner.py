"""The moves of an owner at the edges of its lease, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..ledgers.protocol import Ledger
from ..model.job import Job, Stamps
from .base import (
    LEASE_MS,
    Contract,
    claim,
    claim_one,
    enqueue,
    job_of,
    settlement,
)

Move = Callable[[Ledger, Job, int], bool]
MOVES: dict[str, Move] = {
    "begin": lambda ledger, job, now_ms: ledger.begin(job.id, job.version, now_ms=now_ms),
    "heartbeat": lambda ledger, job, now_ms: ledger.heartbeat(
        job.id, job.version, extend_ms=50, now_ms=now_ms
    ),
    "ask": lambda ledger, job, now_ms: ledger.heartbeat(job.id, job.version, now_ms=now_ms),
    "complete": lambda ledger, job, now_ms: ledger.complete(job.id, job.version, now_ms=now_ms),
    "settle": lambda ledger, job, now_ms: ledger.settle([settlement(job)], now_ms=now_ms)[0].completed,
    "retry": lambda ledger, job, now_ms: ledger.retry(
        job.id, job.version, run_at_ms=None, error="no", max_attempts=9, now_ms=now_ms
    ),
    "last retry": lambda ledger, job, now_ms: ledger.retry(
        job.id, job.version, run_at_ms=None, error="no", max_attempts=1, now_ms=now_ms
    ),
    "fail": lambda ledger, job, now_ms: ledger.fail(job.id, job.version, error="no", now_ms=now_ms),
    "release": lambda ledger, job, now_ms: ledger.release(job.id, job.version, now_ms=now_ms),
    "hold": lambda ledger, job, now_ms: ledger.hold(job.id, job.version, error="no", now_ms=now_ms),
}
ODD_ERRORS = {
    "nul": "a\0b",
    "lone surrogate": "a\ud800b",
    "quotes": '\'; DROP TABLE jobs; -- "%s" {}',
    "several scripts": "nicht möglich, не можно, 不可能 🙁",
    "empty": "",
}


class OwnerContract(Contract):
    """What only the owner may do, by the current fence, before the lease ends."""

    @pytest.mark.parametrize("verb", MOVES)
    @pytest.mark.parametrize(("offset_ms", "holds"), [(-1, True), (0, False), (+1, False)])
    def test_the_instant_at_which_the_lease_ends_belongs_to_the_next_holder(
        self, ledger: Ledger, verb: str, offset_ms: int, holds: bool
    ) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        before = job_of(ledger)
        assert MOVES[verb](ledger, job, job.lease_until_ms + offset_ms) is holds
        if not holds:
            assert job_of(ledger) == before
            assert claim_one(ledger, job.lease_until_ms + offset_ms).version == job.version + 2

    @pytest.mark.parametrize("verb", MOVES)
    def test_a_stale_worker_is_refused_after_the_next_claim(self, ledger: Ledger, verb: str) -> None:
        enqueue(ledger, "a")
        stale = claim_one(ledger, 0)
        fresh = claim_one(ledger, LEASE_MS)
        before = job_of(ledger)
        assert MOVES[verb](ledger, stale, LEASE_MS + 1) is False
        assert job_of(ledger) == before
        assert ledger.complete("a", fresh.version, now_ms=LEASE_MS + 1)

    @pytest.mark.parametrize("verb", MOVES)
    def test_where_the_clock_went_back_the_holder_still_holds(self, ledger: Ledger, verb: str) -> None:
        enqueue(ledger, "a", now_ms=5_000)
        assert MOVES[verb](ledger, claim_one(ledger, 5_000), 0)

    def test_only_one_job_is_moved(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c")
        jobs = claim(ledger, 0, limit=3)
        assert ledger.complete("b", jobs[1].version, now_ms=1)
        assert [job_of(ledger, id).state for id in "abc"] == ["running", "completed", "running"]

    # -- heartbeat --

    def test_a_heartbeat_moves_the_end_of_the_lease(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0, lease_ms=100)
        assert ledger.heartbeat("a", job.version, extend_ms=500, now_ms=99)
        assert job_of(ledger).lease_until_ms == 599
        assert claim(ledger, 598) == []
        assert ledger.complete("a", job.version, now_ms=598)

    @pytest.mark.parametrize("extend_ms", [0, 1, 99, 100])
    def test_a_heartbeat_never_shortens_the_lease(self, ledger: Ledger, extend_ms: int) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0, lease_ms=150)
        assert ledger.heartbeat("a", job.version, extend_ms=extend_ms, now_ms=50)
        assert job_of(ledger).lease_until_ms == 150

    def test_a_heartbeat_cannot_revive_a_lease(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        assert not ledger.heartbeat("a", job.version, extend_ms=9_000, now_ms=LEASE_MS)
        assert job_of(ledger).lease_until_ms == LEASE_MS

    # -- retry --

    @pytest.mark.parametrize("run_at_ms", [None, 0, 700])
    def test_a_retry_queues_the_job_for_the_instant_given(
        self, ledger: Ledger, run_at_ms: int | None
    ) -> None:
        enqueue(ledger, "a", run_at_ms=5)
        job = claim_one(ledger, 10)
        assert ledger.retry("a", job.version, run_at_ms=run_at_ms, error="no", max_attempts=3, now_ms=20)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts) == ("queued", 2, 1)
        assert (after.run_at_ms, after.last_error, after.lease_until_ms) == (run_at_ms, "no", 0)
        if run_at_ms == 700:
            assert claim(ledger, 699) == []
        assert claim_one(ledger, 700).attempts == 2

    def test_a_retry_without_an_error_has_none(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.retry("a", job.version, run_at_ms=None, error="first", max_attempts=3, now_ms=1)
        job = claim_one(ledger, 2)
        assert ledger.retry("a", job.version, run_at_ms=None, error=None, max_attempts=3, now_ms=3)
        assert job_of(ledger).last_error is None

    @pytest.mark.parametrize(
        ("own", "workers", "state"),
        [(None, 1, "dead"), (None, 2, "queued"), (1, 9, "dead"), (2, 1, "queued")],
    )
    def test_the_last_attempt_is_not_retried(
        self, ledger: Ledger, own: int | None, workers: int, state: str
    ) -> None:
        enqueue(ledger, "a", stamps=Stamps(max_attempts=own))
        job = claim_one(ledger, 0, max_attempts=9)
        assert ledger.retry("a", job.version, run_at_ms=50, error="no", max_attempts=workers, now_ms=1)
        after = job_of(ledger)
        assert (after.state, after.version, after.attempts, after.last_error) == (state, 2, 1, "no")
        assert after.died_at_ms == (1 if state == "dead" else None)

    @pytest.mark.parametrize(
        ("error", "exhausted", "want"),
        [("mine", "given", "mine"), (None, "given", "given"), (None, None, "max attempts exceeded")],
    )
    def test_the_last_retry_says_why(
        self, ledger: Ledger, error: str | None, exhausted: str | None, want: str
    ) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        given = {} if exhausted is None else {"exhausted_error": exhausted}
        assert ledger.retry("a", job.version, run_at_ms=None, error=error, max_attempts=1, now_ms=1, **given)
        assert job_of(ledger).last_error == want

    def test_a_retry_forgets_that_the_attempt_had_started(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.begin("a", job.version, now_ms=1)
        ledger.retry("a", job.version, run_at_ms=None, error="no", max_attempts=3, now_ms=2)
        assert job_of(ledger).started_at_ms is None
        job = claim_one(ledger, 3)
        assert claim_one(ledger, job.lease_until_ms).version == job.version + 2

    # -- release --

    def test_a_release_gives_the_attempt_back(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        for round in range(5):
            job = claim_one(ledger, round, max_attempts=1)
            assert (job.attempts, job.version) == (1, 1 + 2 * round)
            assert ledger.release("a", job.version, now_ms=round)
        after = job_of(ledger)
        assert (after.state, after.attempts, after.version, after.lease_until_ms) == ("queued", 0, 10, 0)

    def test_a_started_job_is_not_released(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.begin("a", job.version, now_ms=1)
        assert not ledger.release("a", job.version, now_ms=2)
        assert ledger.complete("a", job.version, now_ms=3)

    # -- last errors --

    def test_a_last_error_stays_until_the_next_failure(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        ledger.retry("a", job.version, run_at_ms=None, error="first", max_attempts=9, now_ms=1)
        job = claim_one(ledger, 2)
        assert job_of(ledger).last_error == "first"
        ledger.retry("a", job.version, run_at_ms=None, error="second", max_attempts=9, now_ms=3)
        assert job_of(ledger).last_error == "second"
        job = claim_one(ledger, 4)
        assert ledger.complete("a", job.version, now_ms=5)
        assert job_of(ledger).last_error == "second"

    @pytest.mark.parametrize("verb", ["retry", "fail", "hold"])
    @pytest.mark.parametrize("error", ODD_ERRORS.values(), ids=ODD_ERRORS)
    def test_no_error_is_too_odd_to_finish_with(self, ledger: Ledger, verb: str, error: str) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        if verb == "retry":
            assert ledger.retry("a", job.version, run_at_ms=None, error=error, max_attempts=9, now_ms=1)
        else:
            assert getattr(ledger, verb)("a", job.version, error=error, now_ms=1)
        kept = job_of(ledger).last_error
        assert kept is not None
        if "\0" not in error and error.isprintable():
            assert kept == error
        kept.encode()

    def test_an_error_of_a_megabyte_finishes_too_and_its_beginning_is_kept(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        job = claim_one(ledger, 0)
        error = "the beginning " + "é" * 500_000
        assert ledger.fail("a", job.version, error=error, now_ms=1)
        kept = job_of(ledger).last_error
        assert kept is not None
        assert kept[:400] == error[:400]
        assert error.startswith(kept.rstrip(".… ")[:400])
