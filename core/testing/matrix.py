"""Every situation × every verb: what docs/reference/contract/jobs.md §2 allows, what changes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from ..ledgers.protocol import Ledger
from ..model.job import ClaimRequest, Job
from .base import Contract, receipt, settlement
from .model_store import as_kept
from .situations import LATER_MS, NOW_MS, SITUATIONS

Call = Callable[[Ledger, int], bool]
"""The verb, upon the job "a" under this fence, at ``NOW_MS``."""
Change = Callable[[Job], Job | None]
"""The job after the move, from the job before it; None: it is forgotten."""

OWNER_MOVES: Final[dict[str, Call]] = {
    "begin": lambda ledger, version: ledger.begin("a", version, now_ms=NOW_MS),
    "heartbeat": lambda ledger, version: ledger.heartbeat("a", version, extend_ms=5_000, now_ms=NOW_MS),
    "complete": lambda ledger, version: ledger.complete("a", version, now_ms=NOW_MS),
    "settle": lambda ledger, version: (
        ledger.settle([settlement(Job("a", version=version))], now_ms=NOW_MS)[0].completed
    ),
    "retry": lambda ledger, version: ledger.retry(
        "a", version, run_at_ms=LATER_MS + 1, error="again", max_attempts=2, now_ms=NOW_MS
    ),
    "last retry": lambda ledger, version: ledger.retry(
        "a", version, run_at_ms=LATER_MS + 1, error=None, max_attempts=1, now_ms=NOW_MS
    ),
    "fail": lambda ledger, version: ledger.fail("a", version, error="never", now_ms=NOW_MS),
    "release": lambda ledger, version: ledger.release("a", version, now_ms=NOW_MS),
    "hold": lambda ledger, version: ledger.hold("a", version, error="look", now_ms=NOW_MS),
}
"""The moves of an owner."""

OPERATORS_MOVES: Final[dict[str, Call]] = {
    "cancel": lambda ledger, _: ledger.cancel("a", now_ms=NOW_MS),
    "reschedule": lambda ledger, _: ledger.reschedule("a", run_at_ms=LATER_MS + 2, now_ms=NOW_MS),
    "reschedule sooner": lambda ledger, _: ledger.reschedule("a", run_at_ms=0, priority=-7, now_ms=NOW_MS),
    "redrive": lambda ledger, _: ledger.redrive("a", now_ms=NOW_MS),
    "resolve applied": lambda ledger, _: ledger.resolve(
        "a", decision="applied", outcome={"words": 3}, now_ms=NOW_MS
    ),
    "resolve retry": lambda ledger, _: ledger.resolve("a", decision="retry", now_ms=NOW_MS),
    "resolve fail": lambda ledger, _: ledger.resolve("a", decision="fail", now_ms=NOW_MS),
    "purge": lambda ledger, _: ledger.purge("a", now_ms=NOW_MS),
}
MOVES: Final = OWNER_MOVES | OPERATORS_MOVES

LIVE: Final = ("running", "started", "running_expired")
QUEUED: Final = ("queued", "delayed", "expired", "retried")
UNFINISHED: Final = (*QUEUED, *LIVE, "lapsed", "lapsed_started")


def _dead(error: str) -> Change:
    return lambda job: job._replace(
        state="dead",
        version=job.version + 1,
        lease_until_ms=0,
        last_error=error,
        died_at_ms=NOW_MS,
    )


def _queued(job: Job) -> Job:
    return job._replace(state="queued", version=job.version + 1, lease_until_ms=0)


def _held(job: Job, error: str) -> Job:
    return job._replace(state="held", version=job.version + 1, lease_until_ms=0, last_error=error)


def _completed(job: Job) -> Job:
    return job._replace(state="completed", lease_until_ms=0, completed_at_ms=NOW_MS)


def _redriven(job: Job) -> Job:
    return _queued(job)._replace(attempts=0, run_at_ms=None, last_error=None, died_at_ms=None)


ALLOWED: Final[dict[str, tuple[tuple[str, ...], Change]]] = {
    "begin": (LIVE, lambda job: job._replace(started_at_ms=NOW_MS)),
    "heartbeat": (LIVE, lambda job: job._replace(lease_until_ms=NOW_MS + 5_000)),
    "complete": (LIVE, _completed),
    "settle": (LIVE, _completed),
    "retry": (
        LIVE,
        lambda job: _queued(job)._replace(run_at_ms=LATER_MS + 1, last_error="again", started_at_ms=None),
    ),
    "last retry": (LIVE, lambda job: _dead("max attempts exceeded")(job._replace(started_at_ms=None))),
    "fail": (LIVE, lambda job: _dead("never")(job._replace(started_at_ms=None))),
    "release": (
        ("running", "running_expired"),
        lambda job: _queued(job)._replace(attempts=job.attempts - 1),
    ),
    "hold": (LIVE, lambda job: _held(job, "look")),
    "cancel": (UNFINISHED, _dead("cancelled")),
    "reschedule": (QUEUED, lambda job: job._replace(run_at_ms=LATER_MS + 2)),
    "reschedule sooner": (QUEUED, lambda job: job._replace(run_at_ms=0, priority=-7)),
    "redrive": (("dead",), _redriven),
    "resolve applied": (
        ("held",),
        lambda job: _completed(job)._replace(version=job.version + 1),
    ),
    "resolve retry": (
        ("held",),
        lambda job: _queued(job)._replace(attempts=0, run_at_ms=None, started_at_ms=None),
    ),
    "resolve fail": (
        ("held",),
        lambda job: _dead(f"resolved as failed; it was held for: {job.last_error}")(job),
    ),
    "purge": (("dead", "dead_started"), lambda job: None),
}
"""Of each verb: the situations in which it is allowed, and what it changes."""

NOBODY_KNOWS: Final = ("redrive", "dead_started")
"""The one verb with two ends: a dead job that had started and left no receipt is held, not queued."""


def expected(verb: str, situation: str, job: Job | None) -> tuple[bool, Job | None]:
    """The verb's answer, and the job after it."""
    if job is not None and (verb, situation) == NOBODY_KNOWS:
        return True, _held(_redriven(job._replace(version=job.version - 1)), "attempt lost after its start")
    situations, change = ALLOWED[verb]
    if job is None or situation not in situations:
        return False, job
    return True, change(job)


class MatrixContract(Contract):
    """A verb does exactly what its row says, or nothing at all."""

    @pytest.mark.parametrize("situation", SITUATIONS)
    @pytest.mark.parametrize("verb", MOVES)
    def test_a_verb_does_what_the_contract_says_or_nothing(
        self, ledger: Ledger, situation: str, verb: str
    ) -> None:
        version = SITUATIONS[situation](ledger)
        answer, after = expected(verb, situation, ledger.get_job("a"))
        recorded = len(ledger.audit())
        assert MOVES[verb](ledger, version) is answer
        assert ledger.get_job("a") == (None if after is None else as_kept(after, ledger.capabilities))
        assert len(ledger.audit()) - recorded == (answer and verb in OPERATORS_MOVES)

    @pytest.mark.parametrize("situation", SITUATIONS)
    @pytest.mark.parametrize("verb", OWNER_MOVES)
    def test_another_fence_never_fits(self, ledger: Ledger, situation: str, verb: str) -> None:
        version = SITUATIONS[situation](ledger)
        before = ledger.get_job("a")
        current = version if before is None else before.version
        for fence in (current - 1, current + 1):
            assert OWNER_MOVES[verb](ledger, fence) is False
            assert ledger.get_job("a") == before

    @pytest.mark.parametrize("verb", OWNER_MOVES)
    def test_a_refused_settlement_or_move_never_costs_the_receipt(self, ledger: Ledger, verb: str) -> None:
        version = SITUATIONS["running"](ledger)
        ledger.publish(receipt())
        assert OWNER_MOVES[verb](ledger, version + 1) is False
        assert ledger.receipts(["a"])["a"].same_as(receipt())

    @pytest.mark.parametrize("situation", SITUATIONS)
    def test_a_sweep_buries_what_has_expired_and_nothing_else(self, ledger: Ledger, situation: str) -> None:
        SITUATIONS[situation](ledger)
        before = ledger.get_job("a")
        swept = ledger.sweep_expired(now_ms=NOW_MS)
        if situation in ("expired", "running_expired"):
            assert before is not None
            assert swept.expired == 1
            assert ledger.get_job("a") == _dead("expired")(before)
        else:
            assert swept.expired == 0
            assert ledger.get_job("a") == before

    @pytest.mark.parametrize("situation", SITUATIONS)
    def test_a_claim_settles_what_has_passed_and_takes_what_is_ready(
        self, ledger: Ledger, situation: str
    ) -> None:
        SITUATIONS[situation](ledger)
        before = ledger.get_job("a")
        claimed = [job for job in self.claim_all(ledger) if job.id == "a"]
        after = ledger.get_job("a")
        ends: dict[str, Change] = {
            "queued": _taken,
            "expired": _dead("expired"),
            "running_expired": _dead("expired"),
            "lapsed": lambda job: _taken(_queued(job)),
            "lapsed_started": lambda job: _held(job, "attempt lost after its start"),
        }
        want = before if before is None or situation not in ends else ends[situation](before)
        assert after == (None if want is None else as_kept(want, ledger.capabilities))
        assert [as_kept(job, ledger.capabilities) for job in claimed] == (
            [after] if situation in ("queued", "lapsed") else []
        )

    def claim_all(self, ledger: Ledger) -> list[Job]:
        """Claim whatever is ready now."""
        return ledger.claim(
            ClaimRequest(claimant="worker-2", lease_ms=7_000, max_attempts=3, limit=10), now_ms=NOW_MS
        )


def _taken(job: Job) -> Job:
    return job._replace(
        state="running",
        version=job.version + 1,
        attempts=job.attempts + 1,
        lease_until_ms=NOW_MS + 7_000,
        claimant="worker-2",
        claimed_at_ms=NOW_MS,
        first_claimed_at_ms=NOW_MS if job.first_claimed_at_ms is None else job.first_claimed_at_ms,
    )
