"""Migrations: numbered, each applied once and recorded with its change, whoever comes at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from fencepost.core import LedgerVersion, NewJob
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.ledgers.sqlite.migrations import (
    FOLDER,
    migrate,
    migrations,
    schema_version,
)

SECOND = """
-- A later version: a column is appended, and filled from what is there.
ALTER TABLE fencepost_jobs ADD COLUMN colour TEXT;
UPDATE fencepost_jobs SET colour = 'green; -- not the end';
CREATE TABLE fencepost_added (n INTEGER) STRICT;
CREATE TRIGGER fencepost_counting AFTER INSERT ON fencepost_added
BEGIN
    UPDATE fencepost_added SET n = n + 1;
    UPDATE fencepost_added SET n = n + 1;
END;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The migrations as they are, and a second one."""
    later = tmp_path / "migrations"
    later.mkdir()
    for file in migrations():
        (later / file.name).write_text(file.read_text("utf-8"), "utf-8")
    (later / f"{len(migrations()) + 1:04}_second.sql").write_text(SECOND, "utf-8")
    return later


@pytest.fixture
def connect(path: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    opened: list[sqlite3.Connection] = []

    def connection() -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
        return opened[-1]

    yield connection
    for one in opened:
        one.close()


def schema(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """All that the file defines, in the engine's own words."""
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").fetchall()


def test_the_files_are_numbered_without_gaps() -> None:
    assert [int(file.name[:4]) for file in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_gap_in_the_numbers_is_a_fault_of_the_program(folder: Path) -> None:
    (folder / "0009_late.sql").write_text("SELECT 1;")
    with pytest.raises(ValueError, match=r"0009_late\.sql should be number"):
        migrations(folder)


def test_an_unfinished_statement_is_a_fault_of_the_program(
    folder: Path, path: Path, connect: Callable[[], sqlite3.Connection]
) -> None:
    (folder / f"{len(migrations()) + 2:04}_bad.sql").write_text("CREATE TABLE half (\n-- the end")
    with pytest.raises(ValueError, match="unfinished statement"):
        migrate(connect(), str(path), folder)
    assert schema_version(connect()) == 0


def test_twice_is_once(path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
    migrate(connect(), str(path))
    first = schema(connect())
    before = connect().execute("PRAGMA data_version").fetchone()
    migrate(connect(), str(path))
    assert schema(connect()) == first
    assert connect().execute("PRAGMA data_version").fetchone() == before
    assert schema_version(connect()) == len(migrations())


def test_step_by_step_makes_the_same_schema_as_at_once(
    folder: Path, path: Path, tmp_path: Path, connect: Callable[[], sqlite3.Connection]
) -> None:
    migrate(connect(), str(path))
    migrate(connect(), str(path), folder)
    with closing(sqlite3.connect(tmp_path / "fresh.db", isolation_level=None)) as fresh:
        migrate(fresh, "fresh.db", folder)
        assert schema(fresh) == schema(connect())
        assert schema_version(fresh) == schema_version(connect()) == len(migrations(folder))


def test_rows_of_an_older_version_are_carried_over(
    folder: Path, path: Path, ledger: SqliteLedger, connect: Callable[[], sqlite3.Connection]
) -> None:
    ledger.enqueue([NewJob("a", "text"), NewJob("b", "text", priority=3)])
    ledger.cancel("b")
    before = ledger.jobs()
    migrate(connect(), str(path), folder)
    assert connect().execute("SELECT id, colour FROM fencepost_jobs").fetchall() == [
        ("a", "green; -- not the end")
    ]
    # The columns that were there are read as before: new ones are only appended.
    with pytest.raises(LedgerVersion):
        SqliteLedger(path).jobs()
    assert ledger.jobs() == before


def test_a_ledger_of_a_newer_program_is_refused(
    folder: Path, path: Path, connect: Callable[[], sqlite3.Connection]
) -> None:
    migrate(connect(), str(path), folder)
    before = schema(connect())
    with SqliteLedger(path) as ledger, pytest.raises(LedgerVersion, match="newer program"):
        ledger.counts()
    assert schema(connect()) == before


def test_a_migration_that_fails_leaves_nothing_of_itself(
    folder: Path, path: Path, connect: Callable[[], sqlite3.Connection]
) -> None:
    migrate(connect(), str(path))
    before = schema(connect())
    bad = folder / f"{len(migrations()) + 1:04}_second.sql"
    bad.write_text(SECOND + "INSERT INTO nowhere VALUES (1);")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connect(), str(path), folder)
    assert schema(connect()) == before
    assert schema_version(connect()) == len(migrations())


def test_those_that_come_at_once_apply_it_once(
    folder: Path, path: Path, ledger: SqliteLedger, connect: Callable[[], sqlite3.Connection]
) -> None:
    ledger.counts()
    start = Barrier(6)

    def one() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            start.wait()
            migrate(connection, str(path), folder)

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(one) for _ in range(6)]:
            done.result()
    assert schema_version(connect()) == len(migrations(folder))


def test_the_migrations_lie_in_the_package() -> None:
    assert (FOLDER / "__init__.py").exists()
