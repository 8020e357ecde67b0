"""What the doctor finds in a PostgreSQL server beyond the jobs: old snapshots, bloat, broken indexes, schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from fencepost.core import (
    InvalidInput,
    LedgerFailed,
    NewJob,
    open_ledger,
)
from fencepost.core.ledgers.inspection import Finding
from fencepost.core.ledgers.open import ledger_exists, open_inspection
from fencepost.core.ledgers.postgres import inspection
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.testing import Store


@pytest.fixture
def store(postgres_stores: Callable[[Path], Store], tmp_path: Path) -> str:
    """A ledger with one job."""
    name = postgres_stores(tmp_path).name
    assert name is not None
    with open_ledger(name) as ledger:
        ledger.enqueue([NewJob("a", "x")])
    return name


@pytest.fixture
def connection(postgres_url: str, store: str) -> Iterator[psycopg.Connection]:
    """Somebody else's connection to the schema of that ledger."""
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(f"SET search_path = {parse_address(store).schema}".encode())
        yield other


def found(store: str) -> dict[str, Finding]:
    with open_inspection(store) as look:
        return {finding.check: finding for finding in look.findings()}


def test_settings_that_lose_commits_are_found(store: str) -> None:
    assert found(store)["not-durable"].ids == ("fsync", "full_page_writes", "synchronous_commit")


def test_a_transaction_that_is_open_for_long_is_found(
    store: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "OLD_MS", 0)
    assert "old-snapshots" not in found(store)
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM fencepost_jobs")
    finding = found(store)["old-snapshots"]
    assert f"pid {connection.info.backend_pid}" in finding.ids[0]
    connection.execute("ROLLBACK")
    assert "old-snapshots" not in found(store)


def test_a_transaction_of_another_database_holds_nothing_back(
    store: str, postgres_url: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "OLD_MS", 0)
    connection.execute("CREATE DATABASE next_door TEMPLATE template0")
    try:
        with psycopg.connect(postgres_url, dbname="next_door") as other:
            other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            other.execute("SELECT pg_current_xact_id()")
            assert "old-snapshots" not in found(store)
    finally:
        connection.execute("DROP DATABASE next_door")


def test_tables_full_of_dead_rows_are_found(
    store: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "LEAST_DEAD_ROWS", 0)
    connection.execute("ALTER TABLE fencepost_jobs SET (autovacuum_enabled = false)")
    for _ in range(3):
        connection.execute("UPDATE fencepost_jobs SET attempts = attempts + 1")
    connection.execute("SELECT pg_stat_force_next_flush()")
    both = found(store)
    assert both["autovacuum-off"].ids == ("fencepost_jobs",)
    assert "fencepost_jobs" in both["bloat"].ids
    connection.execute("ALTER TABLE fencepost_jobs RESET (autovacuum_enabled)")
    connection.execute("VACUUM fencepost_jobs")
    assert found(store).keys().isdisjoint({"autovacuum-off"})


def test_an_index_that_is_not_valid_is_found(store: str, connection: psycopg.Connection) -> None:
    valid = "UPDATE pg_index SET indisvalid = %s WHERE indexrelid = 'fencepost_held'::regclass"
    connection.execute(valid, (False,))
    try:
        assert found(store)["broken-indexes"].ids == ("fencepost_held",)
    finally:
        connection.execute(valid, (True,))
    assert "broken-indexes" not in found(store)


@pytest.mark.parametrize(
    ("damage", "mending", "name"),
    [
        (
            "ALTER TABLE fencepost_effects DISABLE TRIGGER fencepost_effects_stay",
            "ALTER TABLE fencepost_effects ENABLE TRIGGER fencepost_effects_stay",
            "fencepost_effects_stay",
        ),
        (
            "ALTER INDEX fencepost_held RENAME TO mine",
            "ALTER INDEX mine RENAME TO fencepost_held",
            "fencepost_held",
        ),
        (
            "ALTER FUNCTION fencepost_next_due RENAME TO mine",
            "ALTER FUNCTION mine RENAME TO fencepost_next_due",
            "fencepost_next_due",
        ),
    ],
)
def test_a_schema_that_somebody_has_changed_is_found(
    store: str, connection: psycopg.Connection, damage: str, mending: str, name: str
) -> None:
    connection.execute(damage.encode())
    try:
        assert found(store)["schema-differs"].ids == (name,)
    finally:
        connection.execute(mending.encode())
    assert "schema-differs" not in found(store)


@pytest.mark.parametrize(("version", "words"), [(99, "the newer program"), (0, "run fencepost migrate")])
def test_a_schema_of_another_version_is_told(
    store: str, connection: psycopg.Connection, version: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (current,) = connection.execute("SELECT schema_version FROM fencepost_meta").fetchone() or (0,)
    if version:
        connection.execute("UPDATE fencepost_meta SET schema_version = %s", (version,))
    else:
        known = inspection.migrations()
        monkeypatch.setattr(inspection, "migrations", lambda: [*known, Path("9999_later.sql")])
    try:
        with pytest.raises(LedgerFailed, match=words):
            found(store)
    finally:
        connection.execute("UPDATE fencepost_meta SET schema_version = %s", (current,))


def test_a_schema_without_a_ledger_is_told_and_stays_as_it_is(
    postgres_url: str, connection: psycopg.Connection
) -> None:
    mark = "&" if "?" in postgres_url else "?"
    nowhere = f"{postgres_url}{mark}fencepost_schema=nowhere"
    assert not ledger_exists(nowhere)
    with pytest.raises(LedgerFailed, match="holds no ledger"):
        found(nowhere)
    assert connection.execute("SELECT to_regnamespace('nowhere')").fetchone() == (None,)


def test_a_server_that_cannot_be_reached_is_told_without_the_password() -> None:
    url = "postgresql://me:geheim@127.0.0.1:1/db"
    with pytest.raises(LedgerFailed) as told:
        ledger_exists(url)
    assert "geheim" not in str(told.value)
    with pytest.raises(InvalidInput):
        ledger_exists("postgresql://me@h/db?fencepost_schema=No")
