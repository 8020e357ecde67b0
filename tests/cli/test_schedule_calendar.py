"""``schedule`` by the calendar: zones, previews, pauses, runs by hand, and sets from fencepost.toml."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inprocess import Program, refused, run

pytestmark = pytest.mark.usefixtures("scheduling")


def ms(written: str) -> int:
    return round(datetime.fromisoformat(written).timestamp() * 1_000)


FRIDAY = str(ms("2026-03-27T12:00+01:00"))
MONDAY = ms("2026-03-30T09:00+02:00")
NINE = ("--every", "0 9 * * mon-fri", "--zone", "Europe/Berlin", "--text", "good morning")


def names(program: Program, now_ms: str = "0") -> list[str]:
    return [job["ID"] for job in program("jobs", "list", "--now-ms", now_ms)["jobs"]]


def test_every_weekday_at_nine_in_berlin(program: Program) -> None:
    added = program("schedule", "add", "nine", *NINE, "--now-ms", FRIDAY)["schedule"]
    assert (added["every"], added["zone"], added["next_ms"]) == ("0 9 * * mon-fri", "Europe/Berlin", MONDAY)
    assert program("schedule", "run", "--now-ms", str(MONDAY - 1))["fired"] == []
    (fired,) = program("schedule", "run", "--now-ms", str(MONDAY))["fired"]
    assert (fired["id"], fired["created"]) == (f"nine-{MONDAY}", True)


def test_after_an_outage_of_days_the_latest_is_made_up_for(program: Program) -> None:
    program("schedule", "add", "nine", *NINE, "--now-ms", FRIDAY)
    fired = program("schedule", "run", "--now-ms", str(ms("2026-04-03T08:00+02:00")))["fired"]
    assert [fire["boundary_ms"] for fire in fired] == [ms("2026-04-02T09:00+02:00")]


def test_not_twice_at_once(program: Program) -> None:
    program("schedule", "add", "a", "--every", "10s", "--text", "x", "--overlap", "skip", "--now-ms", "0")
    program("schedule", "run", "--now-ms", "10000")
    (fire,) = program("schedule", "run", "--now-ms", "20000")["fired"]
    assert (fire["created"], fire["unfinished"]) == (False, "a-10000")
    said = program.refused("schedule", "run", "a", "--now-ms", "25000")
    assert "a-10000 is unfinished" in said


def test_a_run_by_name_fires_now_and_is_recorded(program: Program) -> None:
    program("schedule", "add", "a", "--every", "1h", "--text", "x", "--now-ms", "0")
    (fire,) = program("schedule", "run", "a", "--reason", "late", "--actor", "me", "--now-ms", "5")["fired"]
    assert fire["id"] == "a-5"
    (entry,) = program("audit", "--now-ms", "5")["audit"]
    assert (entry["action"], entry["id"], entry["actor"], entry["reason"]) == (
        "schedule-run",
        "a",
        "me",
        "late",
    )
    assert "there is no schedule 'b'" in program.refused("schedule", "run", "b", "--now-ms", "5")


def test_a_paused_schedule_rests_and_goes_on_in_its_phase(program: Program) -> None:
    program("schedule", "add", "a", "--every", "10s", "--text", "x", "--now-ms", "1000")
    assert program("schedule", "pause", "a", "--now-ms", "1001")["changed"] is True
    assert program("schedule", "pause", "a", "--now-ms", "1001")["changed"] is False
    assert program("schedule", "run", "--now-ms", "99000")["fired"] == []
    resumed = program("schedule", "resume", "a", "--now-ms", "99000")
    assert (resumed["changed"], resumed["schedule"]["next_ms"]) == (True, 101_000)
    assert "there is no schedule 'b'" in program.refused("schedule", "pause", "b")


def test_a_preview_of_a_schedule_begins_with_its_next_time(program: Program) -> None:
    program("schedule", "add", "nine", *NINE, "--now-ms", FRIDAY)
    shown = program("schedule", "preview", "nine", "-n", "2", "--now-ms", FRIDAY)
    assert [time["local"] for time in shown["next"]] == [
        "2026-03-30T09:00:00+02:00",
        "2026-03-31T09:00:00+02:00",
    ]
    assert shown["next"][0]["at_ms"] == MONDAY
    assert "has a zone of its own" in program.refused("schedule", "preview", "nine", "--zone", "UTC")


def preview(*arguments: str) -> Any:
    import json

    ended = run("schedule", "preview", *arguments)
    assert ended.status == 0, ended
    return json.loads(ended.out)


def test_a_preview_of_an_expression_needs_no_ledger(
    scheduling: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = preview(
        "30 2 * * *", "--zone", "Europe/Berlin", "-n", "2", "--now-ms", str(ms("2026-03-28T12:00+01:00"))
    )
    assert [time["local"] for time in shown["next"]] == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    assert shown["tz_version"] is not None
    assert [time["at_ms"] for time in preview("15m", "-n", "2", "--now-ms", "1")["next"]] == [
        900_001,
        1_800_001,
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["preview", "0 9 * *"], "five fields"),
        (["preview", "@daily", "--zone", "europe/berlin"], "did you mean 'Europe/Berlin'"),
        (["preview", "15m", "--zone", "Europe/Berlin"], "takes no zone"),
        (["add", "a", "--every", "0 9 * * *", "--zone", "Berlin", "--text", "x"], "no IANA time zone"),
        (["add", "a", "--every", "1s", "--text", "x", "--missed", "some"], "missed is 'some'"),
        (["add", "a", "--every", "1s", "--text", "x", "--overlap", "wait"], "overlap is 'wait'"),
    ],
)
def test_what_is_not_understood_is_named(
    tmp_path: Path, scheduling: None, arguments: list[str], words: str
) -> None:
    assert words in refused("schedule", *arguments, "--store", str(tmp_path / "jobs.db"))
    assert list(tmp_path.iterdir()) == []


# -- sets from the configuration --

FILE = """
[queues.mail]
max_attempts = 7

[schedules.nine]
every = "0 9 * * mon-fri"
zone = "Europe/Berlin"
text = "good morning"
queue = "mail"
overlap = "skip"

[schedules.beat]
every = "15m"
text = "tick"
expires_s = 60
max_attempts = 2
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "fencepost.toml"
    file.write_text(FILE, "utf-8")
    return file


def apply(program: Program, config: Path, *options: str) -> Any:
    return program("schedule", "apply", "--config", str(config), "--now-ms", "0", *options)


def test_the_schedules_of_the_file_are_applied(program: Program, config: Path) -> None:
    program("schedule", "add", "by-hand", "--every", "1h", "--text", "x", "--now-ms", "0")
    planned = apply(program, config, "--dry-run")
    assert (planned["dry_run"], planned["added"]) == (True, ["beat", "nine"])
    assert len(program("schedule", "list")["schedules"]) == 1
    assert apply(program, config)["added"] == ["beat", "nine"]
    beat, by_hand, nine = program("schedule", "list")["schedules"]
    assert (beat["every"], beat["expires_s"], beat["stamps"]["max_attempts"]) == ("@every 15m", 60, 2)
    assert (nine["zone"], nine["overlap"], nine["stamps"]["max_attempts"]) == ("Europe/Berlin", "skip", 7)
    assert (beat["owner"], by_hand["owner"]) == ("config", None)
    config.write_text(FILE[: FILE.index("[schedules.beat]")].replace("good morning", "hello"), "utf-8")
    done = apply(program, config)
    assert (done["changed"], done["removed"], done["unchanged"]) == (["nine"], ["beat"], [])
    assert apply(program, config)["unchanged"] == ["nine"]
    assert len(program("schedule", "list")["schedules"]) == 2


def test_a_name_that_was_added_by_hand_is_not_taken(program: Program, config: Path) -> None:
    program("schedule", "add", "beat", "--every", "1h", "--text", "x", "--now-ms", "0")
    said = program.refused("schedule", "apply", "--config", str(config))
    assert "'beat' was added by hand" in said
    assert [one["every"] for one in program("schedule", "list")["schedules"]] == ["@every 1h"]


def test_what_was_applied_is_changed_in_the_file(program: Program, config: Path) -> None:
    apply(program, config)
    said = program.refused("schedule", "add", "beat", "--every", "1h", "--text", "x")
    assert "change it there and apply it again" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[schedules.a]\nevery = '1s'", "[schedules.a]: text must be given"),
        ("[schedules.a]\ntext = 'x'", "[schedules.a]: every must be given"),
        ("[schedules.a]\nevery = 'soon'\ntext = 'x'", "[schedules.a]: every 'soon'"),
        ("[schedules.A]\nevery = '1s'\ntext = 'x'", "[schedules.A]: schedule name 'A'"),
        ("[schedules.a]\nevery = '1s'\ntext = 'x'\nzones = 'UTC'", "the key 'zones' is unknown"),
        ("[schedules.a]\nevery = '@daily'\ntext = 'x'\nzone = 5", "[schedules.a]: zone 5"),
        ("schedules = 5", "[schedules.NAME] must be tables"),
    ],
)
def test_a_fault_in_the_file_is_named(tmp_path: Path, scheduling: None, text: str, words: str) -> None:
    file = tmp_path / "fencepost.toml"
    file.write_text(text, "utf-8")
    store = tmp_path / "jobs.db"
    assert words in refused("schedule", "apply", "--config", str(file), "--store", str(store))
    assert not store.exists()


def test_without_a_file_there_is_nothing_to_apply(
    tmp_path: Path, scheduling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no fencepost.toml here" in refused("schedule", "apply", "--store", "jobs.db")
    assert list(tmp_path.iterdir()) == []
