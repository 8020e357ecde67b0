"""``doctor`` over every kind of ledger: finds what was planted, leaves the rest alone, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.core import Schedule

from tests.cli.diagnosis import Doctor, picture
from tests.cli.inprocess import Program, refused
from tests.cli.planting import DAMAGE, Damage


@pytest.fixture
def damage(ledger_kind: str) -> Damage:
    """What can be done to the store of this test."""
    return DAMAGE[ledger_kind]


@pytest.fixture
def doctor(program: Program, damage: Damage) -> Doctor:
    """The doctor of that store."""
    return Doctor(program.store, damage.always)


@pytest.fixture
def busy(program: Program) -> Program:
    """A sound ledger with a job in every state that is none to worry about."""
    program.enqueue("done")
    program.complete(now_ms=10)
    program.enqueue("gone", "dead", "later", run_at_ms=30)
    program.bury("gone", "dead", now_ms=40)
    program("dead", "purge", "gone", "--now-ms", "50")
    program.enqueue("queued", now_ms=50)
    return program


def test_a_sound_ledger_has_no_findings(busy: Program, doctor: Doctor) -> None:
    report = doctor.report()
    assert report["findings"] == []
    assert (report["entries"], report["receipts"], report["receipts_verified"]) == (5, 1, 1)


def test_an_empty_ledger_is_sound(program: Program, doctor: Doctor) -> None:
    program.enqueue("a")
    program("jobs", "cancel", "a", "--now-ms", "1")
    program("dead", "purge", "a", "--now-ms", "2")
    assert doctor.checks() == []


def test_the_doctor_changes_nothing(busy: Program, doctor: Doctor, tmp_path: Path) -> None:
    with busy.ledger() as ledger:
        rows = ledger.export_rows().rows
    before = picture(tmp_path)
    assert doctor.checks("--verify") == []
    assert picture(tmp_path) == before
    with busy.ledger() as ledger:
        assert ledger.export_rows().rows == rows


@pytest.mark.parametrize(
    ("what", "id", "check"),
    [
        ("lose_input", "queued", "job-without-input"),
        ("lose_receipt", "done", "completed-without-receipt"),
        ("change_text", "done", "receipt-differs"),
        ("garble_receipt", "done", "unreadable"),
        ("miscount", "done", "outcome-differs"),
        ("forget_job", "queued", "input-without-job"),
        ("forget_job", "done", "receipt-without-job"),
    ],
)
def test_parts_that_are_missing_or_altered_are_found(
    busy: Program, doctor: Doctor, damage: Damage, what: str, id: str, check: str
) -> None:
    getattr(damage, what)(busy.store, id)
    (finding,) = doctor.report()["findings"]
    assert (finding["check"], finding["ids"], finding["count"]) == (check, [id], 1)
    assert finding["remedy"]


def test_a_wrong_count_is_shown_beside_the_right_one(busy: Program, doctor: Doctor, damage: Damage) -> None:
    damage.miscount(busy.store, "done")
    (finding,) = doctor.report("--verify")["findings"]
    assert 'done has {"bytes":12,"words":4}, it should be {"bytes":12,"words":3}' in finding["problem"]
    assert "back-up" in finding["remedy"]


def test_held_and_stuck_jobs_are_found(program: Program, doctor: Doctor) -> None:
    program.enqueue("held")
    program.hold("held")
    program.enqueue("stuck", queue="mail")
    program.claim(now_ms=10, lease_ms=10)
    program.enqueue("late", run_at_ms=5, expires_at_ms=20)
    now_ms = str(10 + 10 * 60_000)
    assert doctor.checks(now_ms=now_ms) == ["held", "expired-unswept", "stuck-running"]


@pytest.mark.usefixtures("scheduling")
def test_a_pause_that_keeps_jobs_waiting_is_found(program: Program, doctor: Doctor) -> None:
    program.enqueue("a", queue="mail")
    program("queues", "pause", "mail", "--now-ms", "5")
    (finding,) = doctor.report()["findings"]
    assert (finding["check"], finding["ids"]) == ("paused", ["a"])
    assert "queues resume mail" in finding["remedy"]


BEAT = ("--every", "1m", "--text", "x")


@pytest.mark.usefixtures("scheduling")
def test_a_schedule_that_waits_for_a_held_job_is_found(program: Program, doctor: Doctor) -> None:
    program("schedule", "add", "beat", *BEAT, "--overlap", "skip", "--now-ms", "0")
    program("schedule", "run", "--now-ms", "60000")
    program.hold("beat-60000", now_ms=60_000)
    held, waits = doctor.report(now_ms="60001")["findings"]
    assert held["check"] == "held"
    assert (waits["check"], waits["ids"]) == ("schedule-waits-for-held", ["beat"])
    assert "jobs resolve" in waits["remedy"]


@pytest.mark.usefixtures("scheduling")
def test_a_schedule_that_nobody_fires_is_found_unless_it_is_paused(program: Program, doctor: Doctor) -> None:
    program("schedule", "add", "beat", *BEAT, "--now-ms", "0")
    assert doctor.checks(now_ms="360000") == []
    assert doctor.checks(now_ms="360001") == ["schedule-late"]
    program("schedule", "pause", "beat", "--now-ms", "360001")
    assert doctor.checks(now_ms="360001") == []


@pytest.mark.usefixtures("scheduling")
def test_a_schedule_from_a_clock_that_was_ahead_is_found_until_a_tick_sets_it_right(
    program: Program, doctor: Doctor
) -> None:
    program("schedule", "add", "beat", *BEAT, "--now-ms", str(30 * 86_400_000))
    assert doctor.checks(now_ms="1000") == ["schedule-ahead"]
    assert program("schedule", "run", "--now-ms", "1000")["fired"] == []
    assert doctor.checks(now_ms="1000") == []


@pytest.mark.usefixtures("scheduling")
def test_a_schedule_of_a_newer_tz_database_is_found(program: Program, doctor: Doctor) -> None:
    with program.ledger(now_ms=0) as ledger:
        ledger.begin_copy("elsewhere")
        newer = Schedule("daily", "@daily", "x", next_ms=1, zone="Europe/Berlin", tz_version="9999z")
        ledger.end_copy("elsewhere", schedules=[newer])
    (finding,) = doctor.report(now_ms="5")["findings"]
    assert (finding["check"], finding["ids"]) == ("schedule-cannot-fire", ["daily"])
    assert "upgrade the package tzdata" in finding["problem"]


def test_a_sealed_ledger_is_said_to_be_sealed(busy: Program, doctor: Doctor) -> None:
    with busy.ledger(now_ms=60_000) as ledger:
        ledger.seal("/elsewhere.db", now_ms=60_000)
    (finding,) = doctor.report()["findings"]
    assert finding["check"] == "sealed"
    assert "/elsewhere.db" in finding["problem"]


def test_a_copy_that_has_not_ended_is_found(program: Program, doctor: Doctor) -> None:
    with program.ledger() as ledger:
        ledger.begin_copy("/old/jobs.db", now_ms=0)
    (finding,) = doctor.report()["findings"]
    assert finding["check"] == "unfinished-copy"
    assert "fencepost copy --from /old/jobs.db" in finding["remedy"]


def test_only_the_latest_receipts_are_compared_unless_all_are_asked_for(
    program: Program, doctor: Doctor, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.core.doctor.examine.SAMPLE", 2)
    monkeypatch.setattr("fencepost.core.doctor.examine.BATCH", 4)
    for now_ms, id in enumerate("abcde", 10):
        program.enqueue(id)
        program.complete(now_ms=now_ms)
    damage.change_text(program.store, "a")
    few = doctor.report()
    assert (few["receipts_verified"], few["findings"]) == (2, [])
    every = doctor.report("--verify")
    assert (every["receipts_verified"], every["findings"][0]["ids"]) == (5, ["a"])


def test_the_latest_receipts_are_those_of_the_jobs_that_moved_last(
    program: Program, doctor: Doctor, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.core.doctor.examine.SAMPLE", 1)
    for id in "abc":
        program.enqueue(id, priority="abc".index(id))
    for now_ms in (10, 11, 12):  # the one of the highest priority first
        program.complete(now_ms=now_ms)
    with program.ledger() as ledger:
        latest = "a" if ledger.capabilities.keeps_claim_details else "c"
    damage.change_text(program.store, latest)
    assert doctor.report()["findings"][0]["ids"] == [latest]


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for name in ("nix", "nix.db"):
        assert "there is no ledger" in refused("doctor", "--store", str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []
