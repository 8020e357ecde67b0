"""``doctor`` on what only folders and SQLite files have: modes, strange files, damage, schema, log."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fencepost.core import open_ledger

from tests.cli.diagnosis import Doctor, picture
from tests.cli.inprocess import Program, run
from tests.programs import python

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
    assert Doctor(str(folder)).checks() == ["file-modes", "file-modes"]


def test_files_that_are_none_of_a_ledger_s_are_found_and_leftovers_are_not(folder: Path) -> None:
    (folder / ".jobs.json.1.abc").touch()
    (folder / "notes.txt").touch(0o600)
    (folder / "inputs" / "Upper.json").touch(0o600)
    (folder / "effects" / "link.json").symlink_to("done.json")
    report = Doctor(str(folder)).report()
    (finding,) = report["findings"]
    assert (finding["check"], finding["count"]) == ("strange-files", 3)


@pytest.mark.parametrize("text", ["", "[", '[{"ID": "a"}]', "{}", '[{"ID":"a","State":"lost"}]'])
def test_a_jobs_file_that_cannot_be_read_is_the_one_finding(folder: Path, text: str) -> None:
    (folder / "jobs.json").write_text(text)
    report = Doctor(str(folder)).report()
    assert [finding["check"] for finding in report["findings"]] == ["unreadable-ledger"]
    assert "jobs.json" in report["findings"][0]["problem"]


def test_a_room_that_is_gone_is_found(folder: Path) -> None:
    shutil.rmtree(folder / "effects")
    assert Doctor(str(folder)).checks() == ["missing-folders", "completed-without-receipt"]
    assert not (folder / "effects").exists()


def test_a_folder_without_its_lock_file_is_not_given_one(folder: Path) -> None:
    (folder / "ledger.lock").unlink()
    before = picture(folder)
    assert Doctor(str(folder)).checks() == []
    assert picture(folder) == before


def test_a_folder_that_is_almost_full_is_found_in_time(folder: Path) -> None:
    error = "x" * 1_000
    rows = [
        {"ID": f"j{n}", "State": "dead", "Version": 1, "LeaseUntil": 0, "Attempts": 1, "LastError": error}
        for n in range(3_400)
    ]
    (folder / "jobs.json").write_text(json.dumps(rows))
    assert "almost-full" in Doctor(str(folder)).checks()


@pytest.mark.parametrize(("whole", "tail"), [(60, b""), (60, b"\n"), (0, b"\0" * 80), ("{b}", b"")])
def test_a_line_of_the_audit_that_is_not_whole_is_found(folder: Path, whole: int | str, tail: bytes) -> None:
    audit = folder / "audit.jsonl"
    with open_ledger(folder) as ledger:
        ledger.seal("/a-{b}.db")
    line = audit.read_bytes()
    audit.write_bytes(line[: whole if isinstance(whole, int) else line.index(whole.encode()) + 3] + tail)
    assert Doctor(str(folder)).checks() == ["torn-audit"]
    run("sweep", "--store", str(folder))  # goes on, as after a crash
    with open_ledger(folder) as ledger:
        ledger.seal("/a-{b}.db")
    assert Doctor(str(folder)).checks() == ["torn-audit", "sealed"]


@pytest.mark.parametrize("line", ["{garbage}", "[]", '{"action": "seal"}'])
def test_a_line_of_the_audit_that_is_no_entry_is_found(folder: Path, line: str) -> None:
    (folder / "audit.jsonl").write_text(f"{line}\n")
    (folder / "audit.jsonl").chmod(0o600)
    (finding,) = Doctor(str(folder)).report()["findings"]
    assert finding["check"] == "unreadable-ledger"
    assert "audit.jsonl: line 1 is no audit entry" in finding["problem"]
    assert "__init__" not in finding["problem"]


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
    assert Doctor(str(file)).checks() == ["file-modes"]


def test_a_damaged_database_is_found(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'fencepost_audit_by_id'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((root - 1) * size)
        raw.write(b"\xff" * size)
    assert Doctor(str(file)).checks() in (["integrity"], ["unreadable-ledger"])


@pytest.mark.parametrize(
    ("damage", "checks", "missing"),
    [
        ("DROP TRIGGER fencepost_effects_stay", ["schema-differs"], ["fencepost_effects_stay"]),
        ("DROP INDEX fencepost_ready", ["schema-differs"], ["fencepost_ready"]),
        (
            "DROP TABLE fencepost_paused",
            ["schema-differs", "unreadable-ledger"],
            ["fencepost_paused", "fencepost_resuming"],
        ),
        ("CREATE TABLE mine (n INTEGER)", [], []),
    ],
)
def test_a_schema_that_somebody_has_changed_is_found(
    file: Path, damage: str, checks: list[str], missing: list[str]
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(damage)
    report = Doctor(str(file)).report()
    assert [finding["check"] for finding in report["findings"]] == checks
    if checks:
        assert report["findings"][0]["ids"] == missing


def test_a_file_that_is_no_database_is_found(file: Path) -> None:
    file.write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert Doctor(str(file)).checks() == ["unreadable-ledger"]


def test_a_database_that_is_no_ledger_is_found_and_not_made_one(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    other.chmod(0o600)
    before = picture(tmp_path)
    report = Doctor(str(other)).report()
    assert "no ledger" in report["findings"][0]["problem"]
    assert picture(tmp_path) == before


@pytest.mark.parametrize(("version", "words"), [(99, "the newer program")])
def test_a_schema_of_another_version_is_found(file: Path, version: int, words: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE fencepost_meta SET schema_version = ?", (version,))
    report = Doctor(str(file)).report()
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
    report = Doctor(str(file)).report()
    assert (report["entries"], report["findings"]) == (2, [])
    assert (file.read_bytes(), wal.read_bytes()) == before


def test_a_reader_without_the_right_to_write_can_ask_the_doctor(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, to whom no mode says no.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = file.read_bytes()
    assert Doctor(str(file)).checks() == []
    assert file.read_bytes() == before
