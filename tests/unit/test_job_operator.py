"""Contract §2, what an operator does: cancel, redrive, resolve, against the table."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.core import InvalidInput
from fencepost.core.model import job as rules
from fencepost.core.model.job import (
    STATES,
    Decision,
    Job,
    Stamps,
    State,
)

NOW = 10_000
FULL = Job(
    id="full",
    state="dead",
    version=7,
    lease_until_ms=0,
    attempts=3,
    queue="mail",
    effect="send",
    priority=-3,
    run_at_ms=12_001,
    expires_at_ms=50_001,
    enqueued_at_ms=1_001,
    claimant="worker-1",
    claimed_at_ms=9_101,
    first_claimed_at_ms=5_001,
    started_at_ms=None,
    last_error="of before",
    died_at_ms=9_801,
    stamps=Stamps(1.5, 3, 2.5, 60.0),
)


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_finished_can_be_cancelled(state: State) -> None:
    job = FULL._replace(state=state, lease_until_ms=11_000, died_at_ms=None)
    want = job._replace(state="dead", version=8, lease_until_ms=0, last_error="cancelled", died_at_ms=NOW)
    assert rules.cancel(job, now_ms=NOW) == (want if state in ("queued", "running") else None)


@pytest.mark.parametrize("state", STATES)
def test_what_is_queued_can_be_rescheduled(state: State) -> None:
    job = FULL._replace(state=state)
    moved = rules.reschedule(job, run_at_ms=NOW + 1, priority=None)
    assert moved == (job._replace(run_at_ms=NOW + 1) if state == "queued" else None)
    moved = rules.reschedule(job, run_at_ms=None, priority=9)
    assert moved == (job._replace(priority=9) if state == "queued" else None)


def test_the_error_of_a_cancel_can_be_given() -> None:
    moved = rules.cancel(FULL._replace(state="queued"), now_ms=NOW, error="superseded")
    assert moved is not None
    assert moved.last_error == "superseded"


# -- redrive --------------------------------------------------------------------------------------------------

REDRIVEN = FULL._replace(
    state="queued", version=8, attempts=0, run_at_ms=None, last_error=None, died_at_ms=None
)


@pytest.mark.parametrize("has_receipt", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_only_the_dead_are_redriven(state: State, has_receipt: bool) -> None:
    moved = rules.redrive(FULL._replace(state=state), now_ms=NOW, has_receipt=has_receipt)
    assert moved == (REDRIVEN if state == "dead" else None)


@pytest.mark.parametrize(("offset_ms", "kept"), [(-1, False), (0, False), (+1, True)])
@pytest.mark.parametrize("started", [False, True])
def test_a_redrive_clears_an_expiry_that_has_passed(offset_ms: int, kept: bool, started: bool) -> None:
    job = FULL._replace(expires_at_ms=NOW + offset_ms, started_at_ms=1 if started else None)
    moved = rules.redrive(job, now_ms=NOW, has_receipt=False)
    assert moved is not None
    assert moved.expires_at_ms == (NOW + offset_ms if kept else None)


def test_a_job_without_an_expiry_has_none_after_a_redrive() -> None:
    moved = rules.redrive(FULL._replace(expires_at_ms=None), now_ms=NOW, has_receipt=False)
    assert moved == REDRIVEN._replace(expires_at_ms=None)


def test_what_had_started_and_left_no_receipt_is_held_by_a_redrive() -> None:
    job = FULL._replace(started_at_ms=9_500)
    held = REDRIVEN._replace(state="held", started_at_ms=9_500, last_error="attempt lost after its start")
    assert rules.redrive(job, now_ms=NOW, has_receipt=False) == held
    given = rules.redrive(job, now_ms=NOW, has_receipt=False, error="who knows")
    assert given == held._replace(last_error="who knows")


def test_what_had_started_and_left_its_receipt_is_queued_by_a_redrive() -> None:
    job = FULL._replace(started_at_ms=9_500)
    assert rules.redrive(job, now_ms=NOW, has_receipt=True) == REDRIVEN


# -- resolve --------------------------------------------------------------------------------------------------

HELD = FULL._replace(state="held", started_at_ms=9_500, died_at_ms=None)
RESOLVED: dict[Decision, Job] = {
    "applied": HELD._replace(state="completed", version=8, completed_at_ms=NOW),
    "retry": HELD._replace(state="queued", version=8, attempts=0, run_at_ms=None, started_at_ms=None),
    "fail": HELD._replace(
        state="dead",
        version=8,
        last_error=f"resolved as failed; it was held for: {HELD.last_error}",
        died_at_ms=NOW,
    ),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("decision", RESOLVED)
def test_only_the_held_are_resolved(state: State, decision: Decision) -> None:
    moved = rules.resolve(HELD._replace(state=state), now_ms=NOW, decision=decision)
    assert moved == (RESOLVED[decision] if state == "held" else None)


def test_the_error_of_what_is_resolved_as_failed_can_be_given() -> None:
    moved = rules.resolve(HELD, now_ms=NOW, decision="fail", error="not sent")
    assert moved == RESOLVED["fail"]._replace(last_error=f"not sent; it was held for: {HELD.last_error}")


def test_what_is_resolved_as_failed_and_was_held_for_nothing_says_just_that() -> None:
    moved = rules.resolve(HELD._replace(last_error=None), now_ms=NOW, decision="fail")
    assert moved == RESOLVED["fail"]._replace(last_error="resolved as failed")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("decision", ["", "aply", "Retry", "failed", None, 1])
def test_a_decision_that_is_none_is_refused(state: State, decision: Any) -> None:
    with pytest.raises(InvalidInput, match="applied, retry or fail"):
        rules.resolve(HELD._replace(state=state), now_ms=NOW, decision=decision)
