"""Names of stores: what each spelling means, and that nothing which may hold a password is shown or made a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.core import InvalidInput, LedgerFailed, NewJob, open_ledger
from fencepost.core.ledgers.open import ledger_exists, parse_store


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("jobs", "directory"),
        ("./jobs", "directory"),
        ("jobs.d", "directory"),
        ("jobs.db/", "directory"),
        ("a=b", "directory"),
        ("2026-12-01T10:00", "directory"),
        ("jobs.db", "sqlite"),
        ("jobs.DB", "sqlite"),
        ("jobs.sqlite", "sqlite"),
        ("jobs.SQLite3", "sqlite"),
        ("sqlite:jobs", "sqlite"),
        ("SQLITE:jobs", "sqlite"),
        ("postgresql://h/db", "postgres"),
        ("postgres://h/db", "postgres"),
        ("PostgreSQL://h/db", "postgres"),
    ],
)
def test_the_spelling_of_a_name_says_which_kind_of_ledger_it_means(name: str, kind: str) -> None:
    assert parse_store(name)[0] == kind


NOT_UNDERSTOOD = [
    "postgresql+psycopg://me:s3cret@h/db",
    "postgresql+asyncpg://me:s3cret@h/db",
    "postgres+psycopg2://me:s3cret@h/db",
    "sqlite+aiosqlite:///s3cret.db",
    "postgresql://me:p@s3cret/w#rd@h/db",
    "postgresql://me:p/s3cret@h/db",
    "postgresql://me:s3cret",
    "postgresql://me:s3cret@h:54x32/db",
    "postgresql://me:s3cret@h/db?s3cret",
    "postgresql://me:s3cret@h/db?no_such_option=1",
    "postgresql://me:1?q/s3cret@h/db",
    "postgresql:me:s3cret@h/db",
    "postgresql:/me:s3cret@h/db",
    "POSTGRESQL:me:s3cret@h/db",
    "mysql://me:s3cret@h/db",
    "jdbc:postgresql://h/db?password=s3cret",
    "DATABASE_URL=postgresql://me:s3cret@h/db",
    " postgresql://me:s3cret@h/db",
    "'postgresql://me:s3cret@h/db'",
    "host=h dbname=db user=me password=s3cret",
    "password=s3cret",
    "dbname = db  PASSWORD = s3cret",
    "me:s3cret@h/db",
    ":s3cret@h",
]


@pytest.mark.parametrize("name", NOT_UNDERSTOOD)
def test_what_looks_like_a_url_and_is_not_understood_is_neither_shown_nor_made(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for verb in (open_ledger, ledger_exists):
        with pytest.raises(InvalidInput) as refused:
            verb(name)
        assert "s3cret" not in str(refused.value)
        assert "p@" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("postgresql+psycopg://h/db", "write postgresql://… without +psycopg"),
        ("sqlite+aiosqlite:///jobs.db", "write sqlite:PATH without +aiosqlite"),
        ("host=h dbname=db", "write it as a URL, postgresql://user:password@host:port/database"),
        ("me:pw@h/db", "write postgresql://user:password@host/database"),
    ],
)
def test_the_right_spelling_is_told(name: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        open_ledger(name)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["~/jobs.db", "sqlite:~/jobs", "~/jobs"])
def test_a_home_is_found_where_no_shell_has_looked_for_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    with open_ledger(name) as ledger:
        ledger.enqueue([NewJob("a", "text")])
        assert str(tmp_path) in ledger.location
    assert not Path("/~").exists()


def test_a_home_of_nobody_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no user 'nobody-of-this-name'"):
        open_ledger("~nobody-of-this-name/jobs.db")


@pytest.mark.parametrize("name", ["no/such/folder/jobs.db", "no/such/folder/jobs", "sqlite:no/jobs"])
def test_a_misspelt_name_makes_no_folders_on_the_way(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerFailed, match="does not exist; look at the name of the store"):
        open_ledger(name)
    assert list(tmp_path.iterdir()) == []
