"""``schedule``: jobs that come again and again, over every kind of ledger that has schedules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inprocess import Program, refused, run

pytestmark = pytest.mark.usefixtures("scheduling")


def ids(program: Program) -> list[str]:
    return [job["ID"] for job in program("jobs", "list", "--now-ms", "0")["jobs"]]


def test_a_schedule_enqueues_its_jobs_when_they_are_due(program: Program) -> None:
    added = program(
        "schedule", "add", "tick", "--every", "10s", "--text", "hello", "--queue", "mail", "--now-ms", "1000"
    )["schedule"]
    assert (added["name"], added["every"], added["next_ms"]) == ("tick", "@every 10s", 11_000)
    assert program("schedule", "run", "--now-ms", "10999")["fired"] == []
    fired = program("schedule", "run", "--now-ms", "21000")["fired"]
    assert [(fire["id"], fire["created"]) for fire in fired] == [("tick-11000", True), ("tick-21000", True)]
    assert program("schedule", "run", "--now-ms", "21000")["fired"] == []
    shown = program("jobs", "show", "tick-11000", "--text", "--now-ms", "21000")
    assert (shown["job"]["Queue"], shown["input"]["text"]) == ("mail", "hello")


def test_schedules_are_listed_without_their_texts(program: Program) -> None:
    program("schedule", "add", "b", "--every", "1h", "--text", "hello", "--now-ms", "0")
    program(
        "schedule", "add", "a", "--every", "@every 2h", "--text", "x", "--max-attempts", "2", "--now-ms", "0"
    )
    found = program("schedule", "list")["schedules"]
    assert [(one["name"], one["every"], one["next_ms"]) for one in found] == [
        ("a", "@every 2h", 7_200_000),
        ("b", "@every 1h", 3_600_000),
    ]
    assert found[0]["stamps"]["max_attempts"] == 2
    assert "text" not in found[0]
    assert found[1]["text_bytes"] == 5


def test_a_replaced_schedule_keeps_its_times_while_its_span_is_the_same(program: Program) -> None:
    program("schedule", "add", "a", "--every", "10s", "--text", "x", "--now-ms", "0")
    again = program("schedule", "add", "a", "--every", "10s", "--text", "y", "--now-ms", "7000")
    assert again["schedule"]["next_ms"] == 10_000
    other = program("schedule", "add", "a", "--every", "20s", "--text", "y", "--now-ms", "7000")
    assert other["schedule"]["next_ms"] == 27_000


def test_a_removed_schedule_fires_no_more(program: Program) -> None:
    program("schedule", "add", "a", "--every", "10s", "--text", "x", "--now-ms", "0")
    assert program("schedule", "remove", "a")["removed"] == "a"
    assert program("schedule", "run", "--now-ms", "99999")["fired"] == []
    assert "there is no schedule 'a'" in program.refused("schedule", "remove", "a")


def test_the_text_may_come_from_a_file_or_a_pipe(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("from a file", "utf-8")
    program("schedule", "add", "a", "--every", "1s", "--text-file", str(file), "--now-ms", "0")
    program(
        "schedule", "add", "b", "--every", "1s", "--text-file", "-", "--now-ms", "0", stdin=b"from a pipe"
    )
    program("schedule", "run", "--now-ms", "1000")
    texts = [program("jobs", "show", id, "--text", "--now-ms", "0")["input"]["text"] for id in ids(program)]
    assert texts == ["from a file", "from a pipe"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "a", "--every", "10s"], "either --text or --text-file"),
        (["add", "a", "--every", "10s", "--text", "x", "--text-file", "y"], "either --text or --text-file"),
        (["add", "a", "--every", "5x", "--text", "x"], "every '5x': must be a number and one unit"),
        (["add", "a", "--every", "daily", "--text", "x"], "every 'daily': must be"),
        (["add", "a", "--every", "0s", "--text", "x"], "every '0s': must be a whole number of seconds"),
        (["add", "a", "--every", "1.5", "--text", "x"], "every '1.5': must be a whole number of seconds"),
        (["add", "a", "--every", "@every 5x", "--text", "x"], "schedule '@every 5x'"),
        (["add", "A", "--every", "1s", "--text", "x"], "schedule name 'A'"),
        (["add", "a" * 51, "--every", "1s", "--text", "x"], "at most 50"),
        (["add", "a", "--every", "1s", "--text", "x", "--expires-in", "0"], "expires_s"),
        (["add", "a", "--text", "x"], "--every"),
        (["remove"], "NAME"),
    ],
)
def test_wrong_usage_names_the_right_one_and_makes_no_store(
    tmp_path: Path, scheduling: None, arguments: list[str], words: str
) -> None:
    assert words in refused("schedule", *arguments, "--store", str(tmp_path / "jobs.db"))
    assert list(tmp_path.iterdir()) == []


def test_an_effect_that_is_not_installed_is_warned_of(program: Program) -> None:
    ended = run(
        "schedule",
        "add",
        "a",
        "--every",
        "1s",
        "--text",
        "x",
        "--effect",
        "nowhere",
        "--store",
        program.store,
    )
    assert ended.status == 0
    assert "no effect 'nowhere' is installed here" in ended.err
    assert json.loads(ended.out)["schedule"]["effect"] == "nowhere"


def test_the_stamps_of_the_queue_come_from_the_configuration(program: Program, tmp_path: Path) -> None:
    config = tmp_path / "fencepost.toml"
    config.write_text("[queues.mail]\nmax_attempts = 7\n")
    arguments = ["schedule", "add", "a", "--every", "1s", "--text", "x", "--queue", "mail"]
    added = program(*arguments, "--config", str(config), "--now-ms", "0")
    assert added["schedule"]["stamps"]["max_attempts"] == 7


@pytest.mark.parametrize(
    ("typed", "stored"), [("1.5h", "@every 5400s"), ("90", "@every 90s"), ("15m", "@every 15m")]
)
@pytest.mark.usefixtures("scheduling")
def test_every_is_a_span_as_in_other_options(program: Program, typed: str, stored: str) -> None:
    added = program("schedule", "add", "a", "--every", typed, "--text", "x", "--now-ms", "0")["schedule"]
    assert added["every"] == stored
