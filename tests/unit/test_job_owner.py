"""Contract §2, the moves of a claim and of its holder: every state × fence × boundary, against the table."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fencepost.core.model import job as rules
from fencepost.core.model.job import (
    STATES,
    ClaimRequest,
    Job,
    Stamps,
    State,
)

NOW = 10_000

# A job whose fields are all set, each to a value of its own, so that a field changed by mistake is seen.
FULL = Job(
    id="full",
    state="running",
    version=7,
    lease_until_ms=NOW + 1,
    attempts=2,
    queue="mail",
    effect="send",
    priority=-3,
    run_at_ms=9_001,
    expires_at_ms=50_001,
    enqueued_at_ms=1_001,
    claimant="worker-1",
    claimed_at_ms=9_101,
    first_claimed_at_ms=5_001,
    started_at_ms=None,
    completed_at_ms=None,
    last_error="of before",
    died_at_ms=None,
    stamps=Stamps(1.5, 3, 2.5, 60.0),
)

Move = Callable[[Job, int], Job | None]

MOVES: dict[str, Move] = {
    "begin": lambda job, version: rules.begin(job, version, now_ms=NOW),
    "heartbeat": lambda job, version: rules.heartbeat(job, version, now_ms=NOW, extend_ms=500),
    "complete": lambda job, version: rules.complete(job, version, now_ms=NOW),
    "retry": lambda job, version: rules.retry(
        job, version, now_ms=NOW, run_at_ms=12_000, error="again", max_attempts=9
    ),
    "fail": lambda job, version: rules.fail(job, version, now_ms=NOW, error="never"),
    "release": lambda job, version: rules.release(job, version, now_ms=NOW),
    "hold": lambda job, version: rules.hold(job, version, now_ms=NOW, error="look"),
}

# The column "to", "version", "attempts" and "also" of the table, as the fields that a granted move changes.
CHANGES: dict[str, dict[str, Any]] = {
    "begin": {"started_at_ms": NOW},
    "heartbeat": {"lease_until_ms": NOW + 500},
    "complete": {"state": "completed", "lease_until_ms": 0, "completed_at_ms": NOW},
    "retry": {
        "state": "queued",
        "version": 8,
        "lease_until_ms": 0,
        "run_at_ms": 12_000,
        "last_error": "again",
        "started_at_ms": None,
    },
    "fail": {
        "state": "dead",
        "version": 8,
        "lease_until_ms": 0,
        "last_error": "never",
        "died_at_ms": NOW,
        "started_at_ms": None,
    },
    "release": {"state": "queued", "version": 8, "lease_until_ms": 0, "attempts": 1},
    "hold": {"state": "held", "version": 8, "lease_until_ms": 0, "last_error": "look"},
}


@pytest.mark.parametrize("move", MOVES)
def test_a_holder_moves_its_job_as_the_table_says(move: str) -> None:
    assert MOVES[move](FULL, 7) == FULL._replace(**CHANGES[move])


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    ("state", "fence", "lease_end"), list(itertools.product(STATES, (-1, 0, +1), (-1, 0, +1)))
)
def test_only_running_under_the_same_fence_inside_the_lease_is_granted(
    move: str, state: State, fence: int, lease_end: int
) -> None:
    job = FULL._replace(state=state, lease_until_ms=NOW + lease_end)
    granted = state == "running" and fence == 0 and lease_end == +1
    assert (MOVES[move](job, 7 + fence) is not None) is granted


@pytest.mark.parametrize("move", MOVES)
def test_a_job_that_has_started_may_do_all_but_be_released(move: str) -> None:
    started = FULL._replace(started_at_ms=9_500)
    moved = MOVES[move](started, 7)
    if move == "release":
        assert moved is None
    else:
        assert moved == started._replace(**CHANGES[move])


@pytest.mark.parametrize("move", MOVES)
def test_an_expiry_that_nothing_has_applied_refuses_nobody(move: str) -> None:
    assert MOVES[move](FULL._replace(expires_at_ms=NOW - 1), 7) is not None


@pytest.mark.parametrize(("extend_ms", "end"), [(0, 10_100), (99, 10_100), (100, 10_100), (101, 10_101)])
def test_a_heartbeat_never_shortens_a_lease(extend_ms: int, end: int) -> None:
    job = FULL._replace(lease_until_ms=10_100)
    assert rules.heartbeat(job, 7, now_ms=NOW, extend_ms=extend_ms) == job._replace(lease_until_ms=end)


@pytest.mark.parametrize("started_at_ms", [None, 9_500])
@pytest.mark.parametrize("run_at_ms", [None, 0, 12_000])
@pytest.mark.parametrize("error", [None, "", "again"])
def test_a_retry_takes_instant_and_error_as_they_are_given(
    started_at_ms: int | None, run_at_ms: int | None, error: str | None
) -> None:
    job = FULL._replace(started_at_ms=started_at_ms)
    moved = rules.retry(job, 7, now_ms=NOW, run_at_ms=run_at_ms, error=error, max_attempts=3)
    assert moved == FULL._replace(
        state="queued", version=8, lease_until_ms=0, run_at_ms=run_at_ms, last_error=error
    )


@pytest.mark.parametrize(("attempts", "dead"), [(1, False), (2, False), (3, True), (4, True)])
@pytest.mark.parametrize(("own", "workers"), [(3, 1), (3, 9), (None, 3)])
def test_a_retry_at_the_limit_is_the_end(attempts: int, dead: bool, own: int | None, workers: int) -> None:
    job = FULL._replace(attempts=attempts, started_at_ms=9_500, stamps=Stamps(max_attempts=own))
    moved = rules.retry(job, 7, now_ms=NOW, run_at_ms=12_000, error="mine", max_attempts=workers)
    assert moved is not None
    assert moved.state == ("dead" if dead else "queued")
    if dead:
        assert moved == job._replace(
            state="dead", version=8, lease_until_ms=0, last_error="mine", died_at_ms=NOW, started_at_ms=None
        ), "its owner said that nothing was done"


def test_the_last_retry_without_an_error_says_that_the_attempts_are_used_up() -> None:
    job = FULL._replace(attempts=3)
    moved = rules.retry(job, 7, now_ms=NOW, run_at_ms=None, error=None, max_attempts=1)
    assert moved is not None
    assert moved.last_error == "max attempts exceeded"
    given = rules.retry(
        job, 7, now_ms=NOW, run_at_ms=None, error=None, max_attempts=1, exhausted_error="enough"
    )
    assert given is not None
    assert given.last_error == "enough"
    empty = rules.retry(job, 7, now_ms=NOW, run_at_ms=None, error="", max_attempts=1)
    assert empty is not None
    assert empty.last_error == ""


@pytest.mark.parametrize("attempts", [1, 9])
def test_a_failure_is_final_whatever_the_attempts(attempts: int) -> None:
    moved = rules.fail(FULL._replace(attempts=attempts), 7, now_ms=NOW, error="never")
    assert moved is not None
    assert (moved.state, moved.attempts) == ("dead", attempts)


# -- claim ----------------------------------------------------------------------------------------------------

QUEUED = FULL._replace(state="queued", lease_until_ms=0)
REQUEST = ClaimRequest("worker-2", lease_ms=700, max_attempts=5)


def test_a_claim_is_a_new_fence_one_more_attempt_and_a_lease() -> None:
    assert rules.claim(QUEUED, REQUEST, now_ms=NOW) == FULL._replace(
        version=8,
        attempts=3,
        lease_until_ms=NOW + 1_500,
        claimant="worker-2",
        claimed_at_ms=NOW,
    )


def test_a_first_claim_is_remembered_as_such() -> None:
    fresh = Job("fresh", enqueued_at_ms=5)
    assert rules.claim(fresh, REQUEST, now_ms=NOW) == Job(
        "fresh",
        state="running",
        version=1,
        attempts=1,
        lease_until_ms=NOW + 700,
        enqueued_at_ms=5,
        claimant="worker-2",
        claimed_at_ms=NOW,
        first_claimed_at_ms=NOW,
    )


def test_a_first_claim_at_zero_is_remembered_too() -> None:
    again = rules.claim(QUEUED._replace(first_claimed_at_ms=0), REQUEST, now_ms=NOW)
    assert again is not None
    assert again.first_claimed_at_ms == 0


@pytest.mark.parametrize("state", [state for state in STATES if state != "queued"])
def test_only_queued_jobs_are_claimed(state: State) -> None:
    job = QUEUED._replace(state=state)
    assert not rules.ready(job, NOW, 9)
    assert rules.claim(job, REQUEST, now_ms=NOW) is None


@pytest.mark.parametrize(
    ("run_at_ms", "is_ready"), [(None, True), (0, True), (NOW - 1, True), (NOW, True), (NOW + 1, False)]
)
def test_a_job_is_ready_from_its_run_at_on(run_at_ms: int | None, is_ready: bool) -> None:
    job = QUEUED._replace(run_at_ms=run_at_ms)
    assert rules.ready(job, NOW, 9) is is_ready
    assert (rules.claim(job, REQUEST, now_ms=NOW) is not None) is is_ready


@pytest.mark.parametrize(("attempts", "is_ready"), [(0, True), (2, True), (3, False), (4, False)])
@pytest.mark.parametrize(("own", "workers"), [(3, 1), (3, 9), (None, 3)])
def test_a_job_is_ready_while_it_has_attempts_left(
    attempts: int, is_ready: bool, own: int | None, workers: int
) -> None:
    job = QUEUED._replace(attempts=attempts, stamps=Stamps(max_attempts=own))
    assert rules.ready(job, NOW, workers) is is_ready
    request = replace(REQUEST, max_attempts=workers)
    assert (rules.claim(job, request, now_ms=NOW) is not None) is is_ready


@pytest.mark.parametrize(("own_s", "lease_ms"), [(None, 700), (0.0001, 1), (0.001, 1), (5, 5_000)])
def test_the_lease_is_the_jobs_own_where_it_has_one(own_s: float | None, lease_ms: int) -> None:
    job = Job("a", stamps=Stamps(visibility_timeout_s=own_s))
    claimed = rules.claim(job, REQUEST, now_ms=NOW)
    assert claimed is not None
    assert claimed.lease_until_ms == NOW + lease_ms


# -- order ----------------------------------------------------------------------------------------------------


def test_claims_go_by_priority_then_ready_time() -> None:
    jobs = [
        Job("low", priority=-1, run_at_ms=1),
        Job("run-at-20", run_at_ms=20, enqueued_at_ms=1),
        Job("enqueued-at-15", enqueued_at_ms=15),
        Job("run-at-10", run_at_ms=10, enqueued_at_ms=30),
        Job("high", priority=1, run_at_ms=99),
        Job("run-at-0", run_at_ms=0, enqueued_at_ms=50),
    ]
    order = [job.id for job in sorted(jobs, key=rules.claim_order)]
    assert order == ["high", "run-at-0", "run-at-10", "enqueued-at-15", "run-at-20", "low"]


def test_where_the_time_of_enqueue_is_not_kept_it_counts_as_zero() -> None:
    assert rules.ready_ms(Job("a")) == 0
    assert rules.ready_ms(Job("a", enqueued_at_ms=5)) == 5
    assert rules.ready_ms(Job("a", enqueued_at_ms=5, run_at_ms=0)) == 0
