"""``jobs``, ``dead``, ``sweep`` and ``audit`` over every kind of ledger, with the same words."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from fencepost.core.model.inputs import text_sha256

from tests.cli.inprocess import Program, refused


def ids(document: dict[str, Any]) -> list[str]:
    return [job["ID"] for job in document["jobs"]]


def test_jobs_are_listed_in_order_of_enqueue_with_all_that_is_kept(program: Program) -> None:
    program.enqueue("a", queue="mail")
    program.enqueue("b")
    found = program("jobs", "list", "--now-ms", "5")
    assert ids(found) == ["a", "b"]
    assert found["next"] is None
    assert found["jobs"][0] | {"EnqueuedAt": 0} == {
        "ID": "a", "State": "queued", "Version": 0, "LeaseUntil": 0, "Attempts": 0, "Queue": "mail",
        "Effect": "count", "EnqueuedAt": 0,
    }  # fmt: skip


def test_the_next_page_goes_on_where_the_one_before_ended(program: Program) -> None:
    program.enqueue(*"abcde")
    seen, after = [], []
    while True:
        page = program("jobs", "list", "--limit", "2", "--now-ms", "0", *after)
        seen.append(ids(page))
        if page["next"] is None:
            break
        after = ["--after", page["next"]]
    assert seen == [["a", "b"], ["c", "d"], ["e"]]


def test_pages_of_filtered_jobs_neither_repeat_nor_leave_out_any(program: Program) -> None:
    program.enqueue(*"abcdef")
    program.bury("b", "d", "e", error="TimeoutError: read", now_ms=1)
    first = program("jobs", "list", "--error", "Timeout", "--limit", "2", "--now-ms", "5")
    then = program(
        "jobs", "list", "--error", "Timeout", "--limit", "2", "--now-ms", "5", "--after", first["next"]
    )
    assert [ids(first), ids(then), then["next"]] == [["b", "d"], ["e"], None]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("--state queued", ["a", "c"]),
        ("--state dead --state running", ["b", "d"]),
        ("--queue mail", ["c"]),
        ("--effect other", []),
        ("--error KeyError", ["b"]),
        ("--min-attempts 1", ["b", "d"]),
        ("--max-attempts 0", ["a", "c"]),
    ],
)
def test_filters_narrow_the_list(program: Program, filters: str, found: list[str]) -> None:
    program.enqueue("a", run_at_ms=10_000)
    program.enqueue("b")
    program.bury("b", error="KeyError: 'x'", now_ms=50)
    program.enqueue("c", queue="mail", run_at_ms=10_000)
    program.enqueue("d")
    program.claim(now_ms=60)
    assert ids(program("jobs", "list", "--now-ms", "60", *filters.split())) == found


def test_the_age_of_a_dead_job_counts_from_its_death(program: Program) -> None:
    program.enqueue("a", "b")
    program.bury("a", now_ms=1_000)
    program.bury("b", now_ms=61_000)
    old = program("dead", "list", "--older-than", "60s", "--now-ms", "62000")
    new = program("dead", "list", "--newer-than", "60s", "--now-ms", "62000")
    assert (ids(old), ids(new)) == (["a"], ["b"])


def test_the_age_of_other_jobs_counts_from_the_enqueue_where_that_is_kept(program: Program) -> None:
    program.enqueue("a", now_ms=0)
    program.enqueue("b", now_ms=60_000)
    with program.ledger() as ledger:
        kept = ledger.capabilities.keeps_enqueue_time
    if kept:
        assert ids(program("jobs", "list", "--older-than", "1m", "--now-ms", "60001")) == ["a"]
        assert ids(program("jobs", "list", "--newer-than", "1m", "--now-ms", "60001")) == ["b"]
    else:
        said = program.refused("jobs", "list", "--older-than", "1m", "--now-ms", "60001")
        assert "does not keep when a job was enqueued" in said
        assert "--store jobs.db" in said


def test_show_says_why_what_next_and_when(program: Program) -> None:
    program.enqueue("a")
    program.claim(now_ms=100, lease_ms=30_000)
    shown = program("jobs", "show", "a", "--now-ms", "18100")
    assert "its lease has not ended" in shown["why"]
    assert shown["next"] == (
        "lease ends in 12 s unless the worker renews it, then any worker may take it (attempt 2 of 3 by default)"
    )
    assert shown["next_at_ms"] == 30_100
    assert shown["job"]["State"] == "running"
    assert shown["receipt"] is None
    assert shown["input"] == {"bytes": 9, "sha256": text_sha256("text of a")}


def test_show_takes_for_company_only_jobs_that_the_same_workers_are_on(program: Program) -> None:
    program.enqueue("other", effect="letter")
    program.claim(now_ms=0, lease_ms=30_000)
    program.enqueue("stuck")
    program.claim(now_ms=0, lease_ms=10)
    program.enqueue("a")
    assert "perhaps there is no such worker" in program("jobs", "show", "a", "--now-ms", "50")["why"]
    program.enqueue("busy", priority=1)
    program.claim(now_ms=50, lease_ms=30_000, effects=["count"], limit=2)
    program.enqueue("b")
    assert "other such jobs are running" in program("jobs", "show", "b", "--now-ms", "60")["why"]


def test_show_prints_the_text_only_where_asked(program: Program) -> None:
    program.enqueue("a")
    assert "text" not in program("jobs", "show", "a", "--now-ms", "0")["input"]
    assert program("jobs", "show", "a", "--text", "--now-ms", "0")["input"]["text"] == "text of a"


def test_show_gives_commands_that_name_the_store(program: Program) -> None:
    program.enqueue("a")
    program.hold("a")
    advice = program("jobs", "show", "a", "--now-ms", "5")["advice"]
    with program.ledger() as ledger:
        name = program.store if "://" not in program.store else ledger.location
    assert [line["command"].endswith(f"--store {shlex.quote(name)}") for line in advice] == [True] * 3


def test_show_has_the_receipt_and_the_audit(program: Program) -> None:
    program.enqueue("a", "b")
    program.complete(now_ms=1)
    program("jobs", "cancel", "b", "--actor", "ann", "--reason", "no need", "--now-ms", "7")
    assert program("jobs", "show", "a", "--now-ms", "9")["receipt"]["words"] == 3
    (entry,) = program("jobs", "show", "b", "--now-ms", "9")["audit"]
    assert (entry["action"], entry["actor"], entry["reason"], entry["at_ms"]) == (
        "cancel",
        "ann",
        "no need",
        7,
    )


def test_an_unknown_job_is_said_to_be_unknown(program: Program) -> None:
    program.enqueue("a")
    assert "there is no job 'nix'" in program.refused("jobs", "show", "nix")
    assert "must match" in program.refused("jobs", "show", "Nix")


def test_a_purged_job_is_said_to_be_purged_and_by_whom(program: Program) -> None:
    program.enqueue("a")
    program.bury("a")
    program("dead", "purge", "a", "--actor", "ann", "--reason", "old", "--now-ms", "5")
    said = program.refused("jobs", "show", "a", "--now-ms", "6")
    assert "was purged by ann at 5 ms (old)" in said


def test_cancel_buries_and_says_so_and_refuses_what_is_over(program: Program) -> None:
    program.enqueue("a", "b")
    done = program("jobs", "cancel", "a", "--now-ms", "5")
    assert done["cancelled"] == [{"ID": "a", "State": "dead", "Version": 1}]
    said = program.refused("jobs", "cancel", "a", "b", "nix", "--now-ms", "6")
    assert "'a' is dead, and only one that is queued or running can be cancelled" in said
    assert "fencepost jobs show a" in said
    assert "there is no job 'nix'" in said
    assert "moved all the same: b" in said


def test_reschedule_puts_off_and_brings_forward_and_refuses_what_is_not_queued(program: Program) -> None:
    program.enqueue("a", "b")
    program("jobs", "cancel", "b", "--now-ms", "5")
    done = program("jobs", "reschedule", "a", "--delay", "2m", "--priority", "7", "--now-ms", "10")
    assert done["rescheduled"] == [{"ID": "a", "State": "queued", "Version": 0}]
    shown = program("jobs", "show", "a", "--now-ms", "10")
    assert (shown["job"]["RunAt"], shown["job"]["Priority"]) == (120_010, 7)
    program("jobs", "reschedule", "a", "--run-at", "20", "--now-ms", "10")
    assert program("jobs", "show", "a", "--now-ms", "10")["job"]["RunAt"] == 20
    said = program.refused("jobs", "reschedule", "b", "--delay", "0", "--now-ms", "10")
    assert "'b' is dead, and only one that is queued can be rescheduled" in said


def test_reschedule_wants_to_know_what_is_to_change(program: Program) -> None:
    program.enqueue("a")
    assert "--run-at, --delay or --priority" in program.refused("jobs", "reschedule", "a")


def test_a_job_that_is_named_twice_is_moved_once(program: Program) -> None:
    program.enqueue("a")
    assert len(program("jobs", "cancel", "a", "a", "--now-ms", "5")["cancelled"]) == 1
    assert program.refused("jobs", "cancel", "a", "a", "--now-ms", "6").count("'a' is dead") == 1


@pytest.mark.parametrize(
    ("decision", "state"),
    [(["--retry"], "queued"), (["--fail"], "dead"), (["--applied", '{"charge": "ch_1"}'], "completed")],
)
def test_a_held_job_is_resolved(program: Program, decision: list[str], state: str) -> None:
    program.enqueue("a")
    program.hold("a")
    assert program("jobs", "resolve", "a", *decision, "--now-ms", "9")["resolved"][0]["State"] == state
    if state == "completed":
        assert program("jobs", "show", "a", "--now-ms", "9")["receipt"]["charge"] == "ch_1"


def test_the_receipt_that_is_there_can_be_adopted(program: Program) -> None:
    program.enqueue("a")
    program.hold("a")
    assert "has no receipt" in program.refused("jobs", "resolve", "a", "--adopt-receipt", "--now-ms", "9")


def test_resolve_takes_exactly_one_decision(program: Program) -> None:
    program.enqueue("a")
    program.hold("a")
    assert "exactly one of" in program.refused("jobs", "resolve", "a")
    assert "exactly one of" in program.refused("jobs", "resolve", "a", "--retry", "--fail")
    assert "--applied" in program.refused("jobs", "resolve", "a", "--applied", "{nonsense")
    for no_object in ("3", "[]"):
        said = program.refused("jobs", "resolve", "a", "--applied", no_object)
        assert "JSON object" in said
        assert """for example --applied '{"charge": "ch_1"}'""" in said


def test_dead_jobs_get_a_new_life_by_their_ids(program: Program) -> None:
    program.enqueue("a", "b")
    program.bury("a", "b")
    done = program("dead", "redrive", "a", "b", "--now-ms", "5")
    assert [(job["ID"], job["State"]) for job in done["redriven"]] == [("a", "queued"), ("b", "queued")]
    assert ids(program("dead", "list", "--now-ms", "5")) == []


def test_many_dead_jobs_are_looked_at_first_and_then_moved(program: Program) -> None:
    program.enqueue("a", "b", "c", queue="mail")
    program.enqueue("d")
    program.bury("a", "b", "d", error="TimeoutError: read\nand more")
    program.bury("c", error="KeyError: 1")
    chosen = ["--queue", "mail", "--error", "Timeout", "--now-ms", "5"]
    plan = program("dead", "purge", *chosen, "--dry-run")
    assert plan == {
        "schema_version": 1,
        "dry_run": True,
        "would_be_purged": 2,
        "errors": {"TimeoutError: read": 2},
        "first_ids": ["a", "b"],
    }
    assert ids(program("dead", "list", "--now-ms", "5")) == ["a", "b", "c", "d"]
    assert program("dead", "purge", *chosen, "--yes")["ids"] == ["a", "b"]
    assert ids(program("dead", "list", "--now-ms", "5")) == ["c", "d"]


def test_many_dead_jobs_are_not_moved_unless_somebody_says_yes(program: Program) -> None:
    program.enqueue("a", queue="mail")
    program.bury("a")
    said = program.refused("dead", "redrive", "--queue", "mail", "--now-ms", "5", stdin=b"mail\n")
    assert "to redrive 1 dead job of the queue 'mail'" in said
    assert "--yes" in said
    assert ids(program("dead", "list", "--now-ms", "5")) == ["a"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either their ids, or filters"),
        (["a", "--queue", "mail"], "either their ids, or filters"),
        (["--error", "x", "--yes"], "name it with --queue"),
        (["a", "--dry-run"], "--dry-run goes with filters"),
    ],
)
@pytest.mark.parametrize("verb", ["redrive", "purge"])
def test_wrong_usage_of_bulk_moves_names_the_right_one(
    program: Program, verb: str, arguments: list[str], words: str
) -> None:
    program.enqueue("a")
    assert words in program.refused("dead", verb, *arguments)


def test_sweep_buries_what_has_expired_and_purges_what_was_kept_long_enough(program: Program) -> None:
    program.enqueue("a", "b", expires_at_ms=10)
    program.enqueue("c")
    assert program("sweep", "--now-ms", "10") == {"schema_version": 1, "expired": 2, "purged": 0}
    assert program("sweep", "--now-ms", "10") == {"schema_version": 1, "expired": 0, "purged": 0}


def test_every_manual_action_is_in_the_audit_with_who_when_why_and_from_what(program: Program) -> None:
    program.enqueue("a", "b", "c")
    by = ["--actor", "ann@ops", "--reason", "incident 7"]
    program.hold("a", now_ms=1)
    program("jobs", "resolve", "a", "--fail", *by, "--now-ms", "11")
    program("jobs", "cancel", "b", *by, "--now-ms", "12")
    program("dead", "purge", "b", *by, "--now-ms", "14")
    found = program("audit", "--now-ms", "20")["audit"]
    assert [(entry["at_ms"], entry["action"], entry["id"], entry["from_state"]) for entry in found] == [
        (11, "resolve", "a", "held"),
        (12, "cancel", "b", "queued"),
        (14, "purge", "b", "dead"),
    ]
    assert {(entry["actor"], entry["reason"]) for entry in found} == {("ann@ops", "incident 7")}
    assert [entry["action"] for entry in program("audit", "--id", "b")["audit"]] == ["cancel", "purge"]
    assert [entry["action"] for entry in program("audit", "--limit", "1")["audit"]] == ["purge"]


def test_the_actor_is_the_user_at_this_host_unless_said(program: Program) -> None:
    program.enqueue("a")
    program("jobs", "cancel", "a", "--now-ms", "5")
    (entry,) = program("audit")["audit"]
    assert "@" in entry["actor"]


@pytest.mark.parametrize(
    "command",
    [
        ["jobs", "list"], ["jobs", "show", "a"], ["jobs", "cancel", "a"], ["dead", "list"], ["sweep"], ["audit"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["nix", "nix.db"])
def test_a_misspelt_store_is_said_to_be_none_and_is_not_made(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, command: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no ledger of that name" in refused(*command, "--store", name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_ledger_is_not_made_one(tmp_path: Any) -> None:
    assert "there is no ledger" in refused("jobs", "list", "--store", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
