"""The schema: made once whoever comes first, upgraded on request alone, and never touched by an older program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest
from fencepost.core import ClaimRequest, Ledger, LedgerVersion, NewJob
from fencepost.core.ledgers.postgres import PostgresLedger, migrations
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.ledgers.postgres.upgrade import Upgraded, upgrade, upgrade_script

from tests.programs import document, fencepost, refused

NEW = "new_ledger"
STRUCTURE = """
    SELECT 'column', table_name, column_name, data_type, domain_name, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = %(schema)s
    UNION ALL
    SELECT 'index', tablename, indexname, replace(indexdef, %(schema)s || '.', ''), NULL, NULL, NULL
    FROM pg_indexes WHERE schemaname = %(schema)s
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL
    FROM pg_constraint WHERE connamespace = to_regnamespace(%(schema)s)
    UNION ALL
    SELECT 'trigger', event_object_table, trigger_name, event_manipulation, NULL, NULL, NULL
    FROM information_schema.triggers WHERE trigger_schema = %(schema)s
    ORDER BY 1, 2, 3, 4
"""


@pytest.fixture
def new_url(postgres_url: str) -> Iterator[str]:
    """A schema that is not there."""
    drop = f"DROP SCHEMA IF EXISTS {NEW} CASCADE".encode()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(drop)
        yield f"{postgres_url}?fencepost_schema={NEW}"
        connection.execute(drop)


@pytest.fixture
def tomorrow(tmp_path: Path) -> Path:
    """The migrations of a later program: one more than there are."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder)
    (folder / f"{len(migrations.migrations()) + 1:04}_colour.sql").write_text(
        "ALTER TABLE {schema}.fencepost_jobs ADD COLUMN colour text;\n"
        "UPDATE {schema}.fencepost_jobs SET colour = 'blue';\n"
    )
    return folder


def structure(url: str) -> list[tuple[Any, ...]]:
    address = parse_address(url)
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f"SET search_path = {address.schema}".encode())
        return connection.execute(STRUCTURE.encode(), {"schema": address.schema}).fetchall()


LATEST = len(migrations.migrations())


def test_the_files_are_numbered_without_a_gap(tmp_path: Path) -> None:
    assert [file.name[:4] for file in migrations.migrations()] == [f"{n:04}" for n in range(1, LATEST + 1)]
    (tmp_path / "0002_second.sql").write_text("SELECT 1;")
    with pytest.raises(ValueError, match="0001"):
        migrations.migrations(tmp_path)


def test_whoever_opens_a_ledger_first_makes_it(new_url: str) -> None:
    with PostgresLedger(new_url) as ledger:
        assert ledger.counts()["queued"] == 0
    assert upgrade(new_url) == Upgraded(new_url, LATEST, LATEST)


def test_many_that_come_first_at_once_make_one(new_url: str) -> None:
    start = Barrier(8)

    def enqueue(n: int) -> bool:
        with PostgresLedger(new_url) as ledger:
            start.wait()
            return ledger.enqueue([NewJob(f"job-{n}", "text")])[0].created

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(enqueue, range(8)))
    with PostgresLedger(new_url) as ledger:
        assert ledger.counts()["queued"] == 8


def test_a_migrated_schema_is_a_made_one(new_url: str, url: str, ledger: Ledger) -> None:
    assert upgrade(new_url) == Upgraded(new_url, 0, LATEST)
    assert structure(new_url) == structure(url)


def test_the_script_makes_the_same_schema(new_url: str, url: str, ledger: Ledger) -> None:
    address = parse_address(new_url)
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(upgrade_script(new_url).encode())
    assert structure(new_url) == structure(url)
    assert upgrade_script(new_url) == f"-- up to date, at version {LATEST}\n"


def test_a_migration_that_fails_leaves_the_schema_as_it_was(url: str, ledger: Ledger, tomorrow: Path) -> None:
    before = structure(url)
    (tomorrow / f"{LATEST + 2:04}_broken.sql").write_text(
        "ALTER TABLE {schema}.fencepost_jobs ADD COLUMN x nonsense;"
    )
    with pytest.raises(Exception, match="nonsense"):
        upgrade(url, tomorrow)
    assert structure(url) == before
    assert upgrade(url) == Upgraded(ledger.location, LATEST, LATEST)


def test_an_older_schema_is_upgraded_on_request_alone_with_its_rows(
    new_url: str, tomorrow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresLedger(new_url) as old:
        old.enqueue([NewJob("a", "text\0"), NewJob("b", "text")])
        old.claim(ClaimRequest(claimant="me", lease_ms=60_000, max_attempts=3))
        with monkeypatch.context() as later:
            later.setattr(migrations, "FOLDER", tomorrow)
            later.setattr(migrations.make, "__defaults__", (tomorrow,))
            with PostgresLedger(new_url) as new, pytest.raises(LedgerVersion, match="fencepost migrate"):
                new.counts()
            assert upgrade(new_url, tomorrow) == Upgraded(new_url, LATEST, LATEST + 1)
            with PostgresLedger(new_url) as new:
                assert new.counts() == {"queued": 1, "running": 1, "completed": 0, "dead": 0, "held": 0}
                assert new.read_inputs(["a"])["a"].text == "text\0"
        # Columns are only appended, so a program that was running goes on.
        assert old.complete("a", 1)


def test_a_newer_schema_is_refused(new_url: str, tomorrow: Path) -> None:
    upgrade(new_url, tomorrow)
    before = structure(new_url)
    with (
        PostgresLedger(new_url) as ledger,
        pytest.raises(LedgerVersion, match=f"{LATEST + 1}.*newer program"),
    ):
        ledger.enqueue([NewJob("a", "text")])
    with pytest.raises(LedgerVersion):
        upgrade(new_url)
    assert structure(new_url) == before


def test_a_schema_named_by_a_reserved_word_is_a_schema_like_any_other(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        try:
            with PostgresLedger(postgres_url, schema="user") as ledger:
                ledger.enqueue([NewJob("a", "text")])
                assert ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1))[0].id == "a"
        finally:
            connection.execute('DROP SCHEMA "user" CASCADE')


# -- the command --


def test_the_command_makes_and_then_leaves_alone(new_url: str) -> None:
    for before in (0, LATEST):
        assert document("migrate", "--store", new_url) == {
            "schema_version": 1,
            "store": new_url,
            "from": before,
            "to": LATEST,
        }


def test_the_dry_run_prints_sql_and_changes_nothing(new_url: str) -> None:
    ended = fencepost("migrate", "--store", new_url, "--dry-run")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert f'CREATE TABLE "{NEW}".fencepost_jobs' in ended.stdout.decode()
    assert json.dumps(structure(new_url)) == "[]"


def test_other_ledgers_need_no_such_command(tmp_path: Path) -> None:
    assert "when it is opened" in refused("migrate", "--store", tmp_path / "jobs.db")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_said_in_a_line() -> None:
    said = refused("migrate", "--store", "postgresql://me:s3cret@127.0.0.1:1/db")
    assert "refused" in said
    assert "s3cret" not in said


# -- what the schema itself refuses --

NONSENSE: dict[str, str] = {
    "a state": "UPDATE fencepost_jobs SET state = 'asleep'",
    "an id": "UPDATE fencepost_jobs SET id = 'A'",
    "a trailing newline": "UPDATE fencepost_jobs SET id = E'a\\n'",
    "a queue": "UPDATE fencepost_jobs SET queue = ''",
    "a negative version": "UPDATE fencepost_jobs SET version = -1",
    "a negative instant": "UPDATE fencepost_jobs SET run_at_ms = -1",
    "a lease without a holder": "UPDATE fencepost_jobs SET lease_until_ms = 1",
    "no attempts allowed": "UPDATE fencepost_jobs SET max_attempts = 0",
    "waiting while it runs": "UPDATE fencepost_jobs SET state = 'running', waiting = 1",
    "an input changed": "UPDATE fencepost_inputs SET text = ''",
    "an input deleted": "DELETE FROM fencepost_inputs",
    "a receipt changed": "UPDATE fencepost_effects SET receipt = ''",
    "a receipt deleted": "DELETE FROM fencepost_effects",
    "the audit changed": "UPDATE fencepost_audit SET actor = 'nobody'",
    "the audit deleted": "DELETE FROM fencepost_audit",
    "a second schema version": "INSERT INTO fencepost_meta (only_row, schema_version) VALUES (2, 1)",
}


@pytest.mark.parametrize("statement", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_kept_out_by_the_schema(ledger: Ledger, sql: Callable[..., Any], statement: str) -> None:
    ledger.enqueue([NewJob("a", "text")])
    with pytest.raises((psycopg.IntegrityError, psycopg.errors.RaiseException)):
        sql(statement)
