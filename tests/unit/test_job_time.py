"""Contract §2, what time does to a job: expire, lost, exhausted, reclaim, purge; and what is due next."""

from __future__ import annotations

import itertools
from dataclasses import replace

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
PASSED = pytest.mark.parametrize(("offset_ms", "passed"), [(-1, True), (0, True), (+1, False)])
"""An instant before now, now, or after now: it has passed, the boundary included."""

FULL = Job(
    id="full",
    state="running",
    version=7,
    lease_until_ms=NOW + 500,
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
    last_error="of before",
    stamps=Stamps(1.5, 3, 2.5, 60.0),
)
REQUEST = ClaimRequest(
    "worker-2",
    lease_ms=700,
    max_attempts=5,
    exhausted_error="used up",
    expired_error="too late",
    lost_error="lost it",
)


def dead(job: Job, error: str) -> Job:
    return job._replace(
        state="dead", version=job.version + 1, lease_until_ms=0, last_error=error, died_at_ms=NOW
    )


# -- expire ---------------------------------------------------------------------------------------------------


@PASSED
@pytest.mark.parametrize("state", STATES)
def test_queued_and_running_jobs_expire_even_under_a_live_lease(
    state: State, offset_ms: int, passed: bool
) -> None:
    job = FULL._replace(state=state, expires_at_ms=NOW + offset_ms)
    buried = passed and state in ("queued", "running")
    assert rules.expired(job, NOW) is buried
    assert rules.expire(job, now_ms=NOW) == (dead(job, "expired") if buried else None)
    settled = rules.reap(job, REQUEST, now_ms=NOW, has_receipt=False)
    assert settled == (dead(job, "too late") if buried else None)


def test_a_job_without_an_expiry_never_expires() -> None:
    assert not rules.expired(FULL._replace(expires_at_ms=None), 2**62)


def test_an_expiry_at_zero_is_an_expiry() -> None:
    assert rules.expired(FULL._replace(expires_at_ms=0), 0)


def test_the_error_of_an_expiry_can_be_given() -> None:
    job = FULL._replace(expires_at_ms=NOW)
    assert rules.expire(job, now_ms=NOW, error="late") == dead(job, "late")


# -- settle: the first that fits of expire, lost, exhausted, reclaim ------------------------------------------


@pytest.mark.parametrize(
    ("state", "expires", "lease_over", "started", "used_up", "has_receipt"),
    list(itertools.product(STATES, *[(False, True)] * 5)),
)
def test_the_first_that_fits_is_done(
    state: State, expires: bool, lease_over: bool, started: bool, used_up: bool, has_receipt: bool
) -> None:
    job = FULL._replace(
        state=state,
        expires_at_ms=NOW if expires else NOW + 1,
        lease_until_ms=NOW if lease_over else NOW + 1,
        started_at_ms=9_200 if started else None,
        attempts=3 if used_up else 2,
    )
    want: Job | None = None
    if state == "running":
        if expires:
            want = dead(job, "too late")
        elif lease_over and started and has_receipt:
            want = job._replace(
                state="queued",
                version=8,
                lease_until_ms=0,
                run_at_ms=None,
                started_at_ms=None,
                attempts=job.attempts - 1,
            )
        elif lease_over and started:
            want = job._replace(state="held", version=8, lease_until_ms=0, last_error="lost it")
        elif lease_over and used_up:
            want = dead(job, "used up")
        elif lease_over:
            want = job._replace(state="queued", version=8, lease_until_ms=0, run_at_ms=None)
    elif state == "queued":
        if expires:
            want = dead(job, "too late")
        elif used_up:
            want = dead(job, "used up")
    assert rules.reap(job, REQUEST, now_ms=NOW, has_receipt=has_receipt) == want


@PASSED
def test_a_lease_ends_at_its_instant(offset_ms: int, passed: bool) -> None:
    job = FULL._replace(lease_until_ms=NOW + offset_ms)
    assert rules.lapsed(job, NOW) is passed
    assert rules.lease_valid(job, 7, NOW) is not passed, "the exact complement"
    assert (rules.reap(job, REQUEST, now_ms=NOW, has_receipt=False) is not None) is passed


@pytest.mark.parametrize("state", [state for state in STATES if state != "running"])
def test_only_running_jobs_have_a_lease_to_lapse(state: State) -> None:
    assert not rules.lapsed(FULL._replace(state=state, lease_until_ms=0), NOW)


@pytest.mark.parametrize("state", ["queued", "running"])
@pytest.mark.parametrize(("attempts", "used_up"), [(0, False), (2, False), (3, True), (4, True)])
@pytest.mark.parametrize(("own", "workers"), [(3, 1), (3, 9), (None, 3)])
def test_attempts_are_used_up_at_the_jobs_own_limit_else_the_workers(
    state: State, attempts: int, used_up: bool, own: int | None, workers: int
) -> None:
    job = FULL._replace(state=state, attempts=attempts, lease_until_ms=0, stamps=Stamps(max_attempts=own))
    settled = rules.reap(job, replace(REQUEST, max_attempts=workers), now_ms=NOW, has_receipt=False)
    assert (settled is not None and settled.state == "dead") is used_up


def test_used_up_attempts_leave_the_last_valid_claim_alone() -> None:
    assert (
        rules.reap(FULL._replace(attempts=3, lease_until_ms=NOW + 1), REQUEST, now_ms=NOW, has_receipt=False)
        is None
    )


def test_a_queued_job_that_had_started_is_not_lost() -> None:
    """It can be queued and started only if its release or retry was written by another program."""
    assert (
        rules.reap(FULL._replace(state="queued", started_at_ms=1), REQUEST, now_ms=NOW, has_receipt=False)
        is None
    )


def test_errors_of_a_settling_have_their_defaults() -> None:
    request = ClaimRequest("worker-2", lease_ms=700, max_attempts=5)
    over = FULL._replace(lease_until_ms=NOW)
    cases = {
        "expired": over._replace(expires_at_ms=NOW),
        "attempt lost after its start": over._replace(started_at_ms=9_200),
        "max attempts exceeded": over._replace(attempts=3),
    }
    for error, job in cases.items():
        settled = rules.reap(job, request, now_ms=NOW, has_receipt=False)
        assert settled is not None
        assert settled.last_error == error


# -- the order of a bounded settling --------------------------------------------------------------------------


def test_what_passed_first_is_settled_first() -> None:
    jobs = [
        FULL._replace(id="expired-at-900", expires_at_ms=900, lease_until_ms=NOW + 1),
        FULL._replace(id="over-at-700", lease_until_ms=700),
        FULL._replace(id="expired-at-300-and-over-at-950", expires_at_ms=300, lease_until_ms=950),
        FULL._replace(id="queued-used-up", state="queued", lease_until_ms=0, attempts=3),
        FULL._replace(id="queued-expired-at-500", state="queued", lease_until_ms=0, expires_at_ms=500),
    ]
    assert [job.id for job in sorted(jobs, key=lambda job: rules.reap_due_ms(job, NOW))] == [
        "queued-used-up",
        "expired-at-300-and-over-at-950",
        "queued-expired-at-500",
        "over-at-700",
        "expired-at-900",
    ]


def test_an_expiry_at_zero_passed_at_zero() -> None:
    assert rules.reap_due_ms(FULL._replace(expires_at_ms=0), NOW) == 0


def test_a_claim_settles_a_thousand_jobs_at_most() -> None:
    assert rules.REAP_LIMIT == 1_000


# -- purge ----------------------------------------------------------------------------------------------------


@PASSED
@pytest.mark.parametrize("state", STATES)
def test_the_dead_are_purged_when_their_retention_ends(state: State, offset_ms: int, passed: bool) -> None:
    job = FULL._replace(
        state=state,
        died_at_ms=NOW - 2_000 + offset_ms,
        stamps=Stamps(dead_letter_retention_s=2),
    )
    assert rules.purgeable(job, NOW) is (passed and state == "dead")


@pytest.mark.parametrize(
    ("retention_s", "died_at_ms", "purged"),
    [(None, 0, False), (0, NOW, True), (0, 0, True), (0, None, False)],
)
def test_without_a_retention_or_a_death_there_is_no_purge(
    retention_s: float | None, died_at_ms: int | None, purged: bool
) -> None:
    stamps = Stamps(dead_letter_retention_s=retention_s)
    assert rules.purgeable(Job("a", state="dead", died_at_ms=died_at_ms, stamps=stamps), NOW) is purged


# -- what is due next -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "lease_ms", "run_at_ms", "expires_ms", "due_ms"),
    [
        ("queued", 0, None, None, 0),
        ("queued", 0, None, 500, 0),
        ("queued", 0, 0, None, 0),
        ("queued", 0, 700, None, 700),
        ("queued", 0, 700, 500, 500),
        ("queued", 0, 700, 900, 700),
        ("queued", 0, 700, 0, 0),
        ("running", 700, 300, None, 700),
        ("running", 700, None, 500, 500),
        ("running", 700, None, 900, 700),
        ("completed", 0, 700, 500, None),
        ("dead", 0, 700, 500, None),
        ("held", 0, 700, 500, None),
    ],
)
def test_a_job_is_due_at_the_first_instant_at_which_a_claim_could_find_it(
    state: State, lease_ms: int, run_at_ms: int | None, expires_ms: int | None, due_ms: int | None
) -> None:
    job = Job("a", state=state, lease_until_ms=lease_ms, run_at_ms=run_at_ms, expires_at_ms=expires_ms)
    assert rules.next_due_ms(job) == due_ms
