"""``jobs resolve`` over many held jobs: after an outage of a provider there are thousands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.inprocess import Program


def hold(program: Program, *ids: str, error: str = "outcome unknown", queue: str = "mail") -> None:
    """Enqueue these jobs, start them, and hold them."""
    for id in ids:
        program.enqueue(id, queue=queue)
        program.hold(id, error=error)


def states(program: Program) -> dict[str, str]:
    """Each job's state, by its id."""
    return {job["ID"]: job["State"] for job in program("jobs", "list", "--now-ms", "5")["jobs"]}


def ids(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["id"] for entry in entries]


def test_several_held_jobs_are_decided_by_their_ids(program: Program) -> None:
    hold(program, "a", "b", "c")
    done = program("jobs", "resolve", "a", "b", "--retry", "--now-ms", "5")
    assert [(job["ID"], job["State"]) for job in done["resolved"]] == [("a", "queued"), ("b", "queued")]
    assert states(program) == {"a": "queued", "b": "queued", "c": "held"}


@pytest.mark.parametrize(
    ("decision", "state"),
    [(["--retry"], "queued"), (["--fail"], "dead"), (["--applied", '{"sent": true}'], "completed")],
)
def test_all_held_jobs_of_a_queue_that_fit_are_decided_at_once(
    program: Program, decision: list[str], state: str
) -> None:
    hold(program, "a", "b", error="Retry: rate limited")
    hold(program, "c", error="read timed out")
    hold(program, "d", error="Retry: rate limited", queue="other")
    chosen = ["--queue", "mail", "--error", "rate limited", *decision, "--now-ms", "5"]
    plan = program("jobs", "resolve", *chosen, "--dry-run")
    assert (plan["dry_run"], plan["would_be_resolved"], plan["first_ids"]) == (True, 2, ["a", "b"])
    assert plan["errors"] == {"Retry: rate limited": 2}
    assert set(states(program).values()) == {"held"}
    done = program("jobs", "resolve", *chosen, "--yes", "--actor", "ann", "--reason", "their status page")
    assert (done["resolved"], done["ids"]) == (2, ["a", "b"])
    assert states(program) == {"a": state, "b": state, "c": "held", "d": "held"}
    audit = program("audit")["audit"]
    assert ids(audit) == ["a", "b"]
    assert {(entry["actor"], entry["reason"]) for entry in audit} == {("ann", "their status page")}


def test_many_are_not_decided_unless_somebody_says_yes(program: Program) -> None:
    hold(program, "a")
    said = program.refused("jobs", "resolve", "--queue", "mail", "--retry", "--now-ms", "5", stdin=b"mail\n")
    assert "to resolve 1 held job of the queue 'mail'" in said
    assert states(program) == {"a": "held"}


def test_a_job_that_a_decision_does_not_fit_is_told_and_the_others_are_decided(program: Program) -> None:
    hold(program, "a", "b")
    said = program.refused("jobs", "resolve", "a", "--adopt-receipt", "--queue", "mail", "--now-ms", "5")
    assert "either their ids, or filters" in said
    said = program.refused("jobs", "resolve", "--queue", "mail", "--adopt-receipt", "--yes", "--now-ms", "5")
    assert "2 held jobs could not be resolved, 0 others were" in said
    assert "'a' has no receipt" in said
    said = program.refused("jobs", "resolve", "a", "b", "--adopt-receipt", "--now-ms", "5")
    assert "'a' has no receipt" in said
    assert "'b' has no receipt" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--retry"], "either their ids, or filters"),
        (["a", "--queue", "mail", "--retry"], "either their ids, or filters"),
        (["--error", "x", "--yes", "--retry"], "name it with --queue"),
        (["a", "--dry-run", "--retry"], "--dry-run goes with filters"),
        (["--queue", "mail", "--yes"], "exactly one of --applied"),
    ],
)
def test_wrong_usage_names_the_right_one(program: Program, arguments: list[str], words: str) -> None:
    hold(program, "a")
    assert words in program.refused("jobs", "resolve", *arguments)
    assert states(program) == {"a": "held"}
