"""Texts come back byte for byte whatever a client's encoding is; a database that is not UTF8 is refused, and said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from fencepost.core import (
    ClaimRequest,
    Ledger,
    LedgerFailed,
    NewJob,
    open_ledger,
)
from fencepost.core.ledgers.postgres.upgrade import upgrade, upgrade_script

from tests.programs import refused

NAME = "fencepost_test_encoding"
TEXT = "naïve 日本 😀 \0 \x1f"


@pytest.fixture(params=["LATIN1", "SQL_ASCII", "EUC_JP"])
def other(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    """A database of another encoding."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {NAME}".encode())
        admin.execute(
            f"CREATE DATABASE {NAME} TEMPLATE template0 ENCODING '{request.param}' LC_COLLATE 'C' LC_CTYPE 'C'".encode()
        )
        yield urlsplit(postgres_url)._replace(path=f"/{NAME}").geturl()
        admin.execute(f"DROP DATABASE {NAME} WITH (FORCE)".encode())


def test_a_database_that_is_not_utf8_is_refused_before_anything_is_made(other: str) -> None:
    advice = "encoding is .*must be UTF8.*CREATE DATABASE"
    with open_ledger(other) as ledger, pytest.raises(LedgerFailed, match=advice):
        ledger.enqueue([NewJob("a", "text")])
    for action in (upgrade, upgrade_script):
        with pytest.raises(LedgerFailed, match=advice):
            action(other)
    with psycopg.connect(other) as connection:
        assert connection.execute("SELECT FROM pg_class WHERE relname LIKE 'fencepost%%'").fetchall() == []


def test_migrating_one_says_so_in_a_line(other: str) -> None:
    assert "UTF8" in refused("migrate", "--store", other)


@pytest.mark.parametrize("where", ["the environment", "the URL"])
def test_what_a_client_says_of_its_own_encoding_changes_nothing(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "the environment":
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    else:
        url += "&client_encoding=LATIN1"
    with open_ledger(url) as odd:
        odd.enqueue([NewJob("a", TEXT)], now_ms=0)
        (job,) = odd.claim(ClaimRequest(claimant="日本", lease_ms=10, max_attempts=1), now_ms=1)
        assert odd.fail("a", job.version, error=TEXT, now_ms=2)
        assert odd.redrive("a", actor="日本", reason="naïve", now_ms=3)
    assert ledger.read_inputs(["a"])["a"].text == TEXT
    (entry,) = ledger.audit()
    assert (entry.actor, entry.reason) == ("日本", "naïve")
    job_now = ledger.get_job("a")
    assert job_now is not None
    assert job_now.claimant == "日本"


def test_a_connection_of_the_callers_may_have_any_encoding(
    ledger: Ledger, store: Any, sql: Callable[..., Any]
) -> None:
    with store.connect() as connection:
        connection.execute("SET client_encoding = 'LATIN1'")
        ledger.enqueue([NewJob("a", TEXT)], connection=connection)
    assert ledger.read_inputs(["a"])["a"].text == TEXT
