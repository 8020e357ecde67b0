"""The file: when it is made and how, what else may stand in its place, and what happens when it is swapped."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from fencepost.core import (
    ClaimRequest,
    InvalidInput,
    JobQuery,
    LedgerCorrupt,
    LedgerFailed,
    LedgerReplaced,
    NewJob,
)
from fencepost.core import open_ledger as open_by_name
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.ledgers.sqlite.inspection import SqliteInspection

Open = Callable[..., SqliteLedger]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_files_can_be_read_by_their_owner_only(ledger: SqliteLedger, path: Path) -> None:
    umask = os.umask(0)
    try:
        ledger.enqueue([NewJob("a", "text")])
        assert {file.name: oct(mode(file)) for file in path.parent.iterdir()} == {
            "jobs.db": "0o600",
            "jobs.db-wal": "0o600",
            "jobs.db-shm": "0o600",
        }
    finally:
        os.umask(umask)


def test_nothing_is_made_before_it_is_needed(open_ledger: Open, path: Path) -> None:
    ledger = open_ledger()
    with pytest.raises(InvalidInput):
        ledger.enqueue([NewJob("Not-An-Id", "text")])
    assert ledger.now_ms() == 0
    assert not path.exists()
    assert ledger.counts()["queued"] == 0
    assert path.exists()


def test_the_location_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = SqliteLedger("jobs.db")
    assert ledger.location == str(tmp_path / "jobs.db")
    monkeypatch.chdir("/")
    ledger.enqueue([NewJob("a", "text")])
    ledger.close()
    assert (tmp_path / "jobs.db").exists()


@pytest.mark.parametrize("name", ["a b?c#d%41.db", "ü-日本.db", ":memory:", "-wal.db"])
def test_any_file_name_is_taken_literally(tmp_path: Path, name: str) -> None:
    with SqliteLedger(tmp_path / name) as ledger:
        ledger.enqueue([NewJob("a", "text")])
    assert (tmp_path / name).exists()
    with SqliteLedger(tmp_path / name) as ledger:
        assert ledger.get_job("a") is not None


@pytest.mark.parametrize("name", ["", "a\0b.db"])
def test_what_cannot_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        SqliteLedger(name)


def test_an_unknown_synchronous_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="FULL, NORMAL, OFF"):
        SqliteLedger(path, synchronous="full; DROP TABLE x")  # type: ignore[arg-type]


def test_an_engine_that_is_too_old_is_named_with_what_is_needed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(LedgerFailed, match=r"too old, 3\.37\.0 is needed"):
        SqliteLedger(path)


def test_a_file_that_is_no_database_is_left_as_it_is(ledger: SqliteLedger, path: Path) -> None:
    path.write_bytes(b"certainly no database, " * 100)
    with pytest.raises(LedgerCorrupt, match=r"jobs\.db: not a SQLite database"):
        ledger.counts()
    assert path.read_bytes() == b"certainly no database, " * 100


def test_a_damaged_page_is_reported_as_corrupt(open_ledger: Open, path: Path) -> None:
    with open_ledger() as ledger:
        ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(2_000)])
    # Every connection is closed, so that the file may be opened by other means.
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 40)
    with pytest.raises(LedgerCorrupt, match="back-up"):
        open_ledger().jobs(JobQuery(limit=2_000))


def test_a_text_that_is_no_utf8_is_reported_as_corrupt(ledger: SqliteLedger, path: Path) -> None:
    ledger.counts()
    # Only raw bytes can bring it about: through a type that a STRICT column accepts.
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("INSERT INTO fencepost_inputs VALUES ('a', CAST(x'ff' AS TEXT))")
    connection.close()
    with pytest.raises(LedgerCorrupt, match="UTF-8"):
        ledger.read_inputs(["a"])


def test_a_folder_in_the_place_of_the_file_is_an_error(ledger: SqliteLedger, path: Path) -> None:
    path.mkdir()
    with pytest.raises(LedgerFailed, match=r"jobs\.db: unable to open"):
        ledger.counts()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerFailed, match="file"):
        SqliteLedger(tmp_path / "file" / "jobs.db").counts()


def swap(path: Path) -> None:
    """Put a ledger of its own in the place of this one, as a careless restore does."""
    other = path.with_name("other.db")
    with SqliteLedger(other) as ledger:
        ledger.enqueue([NewJob("other", "text")])
    other.replace(path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(("change", "error"), [(swap, LedgerReplaced), (remove, LedgerFailed)])
def test_a_file_that_was_replaced_or_removed_takes_no_more_work(
    ledger: SqliteLedger, path: Path, change: Callable[[Path], None], error: type[LedgerFailed]
) -> None:
    ledger.enqueue([NewJob("a", "text")])
    change(path)
    verbs: list[Callable[[], object]] = [
        lambda: ledger.enqueue([NewJob("b", "text")]),
        lambda: ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1)),
        lambda: ledger.wait(0),
    ]
    for verb in verbs:
        with pytest.raises(LedgerFailed, match="while it was in use") as raised:
            verb()
        assert type(raised.value) is error


def test_a_file_that_was_removed_is_not_made_anew_by_whoever_had_it_open(
    ledger: SqliteLedger, path: Path, in_thread: Callable[[Callable[[], object]], object]
) -> None:
    ledger.counts()
    remove(path)
    with pytest.raises(LedgerFailed, match="removed"):
        in_thread(ledger.counts)
    assert not path.exists()


def test_a_file_that_was_replaced_ends_a_wait(ledger: SqliteLedger, path: Path) -> None:
    ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1))
    swap(path)
    with pytest.raises(LedgerReplaced):
        ledger.wait(30)


def test_new_threads_of_a_ledger_whose_file_was_replaced_are_refused(
    ledger: SqliteLedger, path: Path, in_thread: Callable[[Callable[[], object]], object]
) -> None:
    ledger.counts()
    swap(path)
    with pytest.raises(LedgerReplaced):
        in_thread(ledger.counts)


def test_an_application_may_keep_its_own_tables_in_the_file(path: Path, ledger: SqliteLedger) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (number INTEGER)")
    connection.execute("INSERT INTO orders VALUES (7)")
    connection.commit()
    ledger.enqueue([NewJob("a", "text")])
    assert connection.execute("SELECT number FROM orders").fetchall() == [(7,)]
    connection.close()


def test_a_backup_by_the_engine_is_a_ledger(ledger: SqliteLedger, path: Path, tmp_path: Path) -> None:
    ledger.enqueue([NewJob("a", "text")])
    source, copy = sqlite3.connect(path), sqlite3.connect(tmp_path / "copy.db")
    source.backup(copy)
    source.close()
    copy.close()
    with SqliteLedger(tmp_path / "copy.db") as restored:
        assert restored.get_job("a") == ledger.get_job("a")


def test_a_link_to_the_file_is_the_same_ledger(ledger: SqliteLedger, path: Path, tmp_path: Path) -> None:
    ledger.enqueue([NewJob("a", "text")])
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    with SqliteLedger(link) as linked:
        assert linked.get_job("a") == ledger.get_job("a")
        linked.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1, queues=["none"]))
        ledger.enqueue([NewJob("b", "text")])
        assert linked.wait(30)


def test_importing_the_package_reads_no_sql_and_loads_no_ctypes() -> None:
    code = (
        "import sys; import fencepost.core, fencepost.core.ledgers.sqlite as sqlite; "
        "from fencepost.core.ledgers.sqlite.database import statements; "
        "assert statements.cache_info().currsize == 0; assert 'ctypes' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_processes_that_make_the_same_file_at_once_all_succeed(path: Path) -> None:
    code = (
        "import sys; from fencepost.core import NewJob, open_ledger\n"
        "with open_ledger(sys.argv[1]) as ledger: ledger.enqueue([NewJob(sys.argv[2], 'text')])"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), f"job-{number}"]) for number in range(8)
    ]
    assert [process.wait() for process in processes] == [0] * 8
    with open_by_name(path) as ledger:
        assert ledger.counts()["queued"] == 8


def test_a_full_disk_is_said_plainly_and_loses_nothing(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("a", "text")])
    with ledger._database.read() as transaction:
        transaction.connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(LedgerFailed, match="disk is full: make room"):
        ledger.enqueue([NewJob("b", "text" * 100_000)])
    assert ledger.get_job("b") is None
    with ledger._database.read() as transaction:
        transaction.connection.execute("PRAGMA max_page_count = 1000000")
    ledger.enqueue([NewJob("b", "text" * 100_000)])
    assert ledger.counts()["queued"] == 2


def test_a_copy_of_a_closed_ledgers_file_is_a_ledger(
    ledger: SqliteLedger, path: Path, tmp_path: Path
) -> None:
    ledger.enqueue([NewJob("a", "text")])
    ledger.close()
    assert not path.with_name("jobs.db-wal").exists()
    shutil.copy(path, tmp_path / "copy.db")
    with SqliteLedger(tmp_path / "copy.db") as copied:
        assert copied.get_job("a") is not None


# -- read-only storage --


def test_a_ledger_on_read_only_storage_can_be_looked_at_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteLedger(path) as ledger:
        ledger.enqueue([NewJob("a", "text")])
    before = sorted(file.name for file in path.parent.iterdir())
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with SqliteLedger(path) as ledger:
        assert [job.id for job in ledger.jobs().jobs] == ["a"]
        assert ledger.read_inputs(["a"])["a"].text == "text"
        with pytest.raises(LedgerFailed, match="whether the storage is read-only"):
            ledger.cancel("a")
    with SqliteInspection(str(path)) as inspection:
        assert list(inspection.findings()) == []
        assert [entry.id for entry in inspection.entries()] == ["a"]
    assert sorted(file.name for file in path.parent.iterdir()) == before, "SQLite makes no files beside it"
