"""``doctor``: finds what was planted, leaves the rest alone, and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inprocess import Ended, Program, refused, run
from tests.cli.planting import DAMAGE, Damage
from tests.programs import python

SETTLED_MS = "60000"


@pytest.fixture
def damage(ledger_kind: str) -> Damage:
    """What can be done to the store of this test."""
    return DAMAGE[ledger_kind]


def diagnosed(store: str, *arguments: str, now_ms: str = SETTLED_MS) -> tuple[Ended, dict[str, Any]]:
    ended = run("doctor", "--store", store, "--now-ms", now_ms, *arguments)
    assert ended.err == ""
    return ended, json.loads(ended.out)


def checks(store: str, *arguments: str, now_ms: str = SETTLED_MS) -> list[str]:
    ended, report = diagnosed(store, *arguments, now_ms=now_ms)
    assert ended.status == (1 if report["findings"] else 0)
    assert report["sound"] == (not report["findings"])
    return [finding["check"] for finding in report["findings"]]


def picture(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below the folder: its mode, when it was changed, what is in it."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


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


def test_a_sound_ledger_has_no_findings(busy: Program) -> None:
    ended, report = diagnosed(busy.store)
    assert (ended.status, report["findings"], report["sound"]) == (0, [], True)
    assert (report["entries"], report["receipts"], report["receipts_verified"]) == (5, 1, 1)


def test_an_empty_ledger_is_sound(program: Program) -> None:
    program.enqueue("a")
    program("jobs", "cancel", "a", "--now-ms", "1")
    program("dead", "purge", "a", "--now-ms", "2")
    assert checks(program.store) == []


def test_the_doctor_changes_nothing(busy: Program, tmp_path: Path) -> None:
    before = picture(tmp_path)
    assert checks(busy.store, "--verify") == []
    assert picture(tmp_path) == before


@pytest.mark.parametrize(
    ("what", "id", "check"),
    [
        ("lose_input", "queued", "job-without-input"),
        ("lose_receipt", "done", "completed-without-receipt"),
        ("change_text", "done", "receipt-differs"),
        ("garble_receipt", "done", "unreadable"),
        ("forget_job", "queued", "input-without-job"),
        ("forget_job", "done", "receipt-without-job"),
    ],
)
def test_parts_that_are_missing_or_altered_are_found(
    busy: Program, damage: Damage, what: str, id: str, check: str
) -> None:
    getattr(damage, what)(busy.store, id)
    ended, report = diagnosed(busy.store)
    (finding,) = report["findings"]
    assert (ended.status, finding["check"], finding["ids"]) == (1, check, [id])
    assert finding["remedy"]


def test_held_and_stuck_jobs_are_found(program: Program) -> None:
    program.enqueue("held")
    program.hold("held")
    program.enqueue("stuck", queue="mail")
    program.claim(now_ms=10, lease_ms=10)
    program.enqueue("late", run_at_ms=5, expires_at_ms=20)
    now_ms = str(10 + 10 * 60_000)
    assert checks(program.store, now_ms=now_ms) == ["held", "expired-unswept", "stuck-running"]


def test_a_sealed_ledger_is_said_to_be_sealed(busy: Program) -> None:
    with busy.ledger(now_ms=60_000) as ledger:
        ledger.seal("/elsewhere.db", now_ms=60_000)
    _, report = diagnosed(busy.store)
    assert [finding["check"] for finding in report["findings"]] == ["sealed"]
    assert "/elsewhere.db" in report["findings"][0]["problem"]


def test_only_the_latest_receipts_are_compared_unless_all_are_asked_for(
    program: Program, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.core.doctor.examine.SAMPLE", 2)
    monkeypatch.setattr("fencepost.core.doctor.examine.BATCH", 2)
    for id in "abcde":
        program.enqueue(id)
        program.complete()
    damage.change_text(program.store, "a")
    _, report = diagnosed(program.store)
    assert (report["receipts_verified"], report["sound"]) == (2, True)
    _, report = diagnosed(program.store, "--verify")
    assert (report["receipts_verified"], report["findings"][0]["ids"]) == (5, ["a"])


def test_a_ledger_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for name in ("nix", "nix.db"):
        assert "there is no ledger" in refused("doctor", "--store", str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


# -- what only a folder has --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory ledger with one job that is done."""
    store = tmp_path / "jobs-data"
    program = Program(str(store))
    program.enqueue("done")
    program.complete()
    return store


def test_files_of_a_folder_that_others_may_open_are_found(folder: Path) -> None:
    (folder / "inputs" / "done.json").chmod(0o644)
    (folder / "effects").chmod(0o755)
    assert checks(str(folder)) == ["file-modes", "file-modes"]


def test_files_that_are_none_of_a_ledger_s_are_found_and_leftovers_are_not(folder: Path) -> None:
    (folder / ".jobs.json.1.abc").touch()
    (folder / "notes.txt").touch(0o600)
    (folder / "inputs" / "Upper.json").touch(0o600)
    (folder / "effects" / "link.json").symlink_to("done.json")
    _, report = diagnosed(str(folder))
    (finding,) = report["findings"]
    assert (finding["check"], finding["count"]) == ("strange-files", 3)


@pytest.mark.parametrize("text", ["", "[", '[{"ID": "a"}]', "{}", '[{"ID":"a","State":"lost"}]'])
def test_a_jobs_file_that_cannot_be_read_is_the_one_finding(folder: Path, text: str) -> None:
    (folder / "jobs.json").write_text(text)
    _, report = diagnosed(str(folder))
    assert [finding["check"] for finding in report["findings"]] == ["unreadable-ledger"]
    assert "jobs.json" in report["findings"][0]["problem"]


def test_a_room_that_is_gone_is_found(folder: Path) -> None:
    shutil.rmtree(folder / "effects")
    assert checks(str(folder)) == ["missing-folders", "completed-without-receipt"]
    assert not (folder / "effects").exists()


def test_a_folder_that_is_almost_full_is_found_in_time(folder: Path) -> None:
    error = "x" * 1_000
    rows = [
        {"ID": f"j{n}", "State": "dead", "Version": 1, "LeaseUntil": 0, "Attempts": 1, "LastError": error}
        for n in range(3_400)
    ]
    (folder / "jobs.json").write_text(json.dumps(rows))
    assert "almost-full" in checks(str(folder))


# -- what only a SQLite file has ---------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A SQLite ledger with one job that is done."""
    store = tmp_path / "jobs.db"
    program = Program(str(store))
    program.enqueue("done")
    program.complete()
    return store


def test_a_database_that_others_may_open_is_found(file: Path) -> None:
    file.chmod(0o644)
    assert checks(str(file)) == ["file-modes"]


def test_a_damaged_database_is_found(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'fencepost_audit_by_id'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((root - 1) * size)
        raw.write(b"\xff" * size)
    assert checks(str(file)) in (["integrity"], ["unreadable-ledger"])


def test_a_file_that_is_no_database_is_found(file: Path) -> None:
    file.write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert checks(str(file)) == ["unreadable-ledger"]


def test_a_database_that_is_no_ledger_is_found_and_not_made_one(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    other.chmod(0o600)
    before = picture(tmp_path)
    _, report = diagnosed(str(other))
    assert "no ledger" in report["findings"][0]["problem"]
    assert picture(tmp_path) == before


@pytest.mark.parametrize(("version", "words"), [(99, "the newer program")])
def test_a_schema_of_another_version_is_found(file: Path, version: int, words: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE fencepost_meta SET schema_version = ?", (version,))
    _, report = diagnosed(str(file))
    assert [finding["check"] for finding in report["findings"]] == ["unreadable-ledger"]
    assert words in report["findings"][0]["problem"]


def test_what_a_killed_process_left_in_the_log_is_seen_and_stays_there(file: Path) -> None:
    killed = python(
        "import os, sys; from fencepost.core import NewJob, open_ledger\n"
        "ledger = open_ledger(sys.argv[1])\n"
        "ledger.enqueue([NewJob('late', 'x')], now_ms=0)\n"
        "os.kill(os.getpid(), 9)",
        file,
    )
    assert killed.returncode == -9
    wal = Path(f"{file}-wal")
    assert wal.stat().st_size > 0
    before = file.read_bytes(), wal.read_bytes()
    _, report = diagnosed(str(file))
    assert (report["entries"], report["sound"]) == (2, True)
    assert (file.read_bytes(), wal.read_bytes()) == before


def test_a_reader_without_the_right_to_write_can_ask_the_doctor(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, to whom no mode says no.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = file.read_bytes()
    assert checks(str(file)) == []
    assert file.read_bytes() == before
