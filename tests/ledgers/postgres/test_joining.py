"""Enqueue inside of the caller's own transaction: whatever ways their connection has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from fencepost.core import IdentityConflict, InvalidInput, Ledger, NewJob
from fencepost.core.ledgers.postgres.address import parse_address
from psycopg.adapt import Dumper, Loader

Connection = psycopg.Connection[Any]

JOBS = [NewJob("known", "text of known"), NewJob("new", "古池\0や", queue="mail", priority=-3, run_at_ms=9)]


@pytest.fixture
def conninfo(url: str) -> str:
    return parse_address(url).conninfo


class Garbled(Loader):
    """Loads every value as the same nonsense."""

    def load(self, data: Any) -> str:
        return "garbled"


class Garbling(Dumper):
    """Sends every value as the same nonsense."""

    def dump(self, obj: Any) -> bytes:
        return b"garbled"


def _garbled_adapters(connection: Connection) -> None:
    for oid in ("int8", "text", "bytea", "bool", "text[]"):
        connection.adapters.register_loader(oid, Garbled)
    for kind in (str, int, bytes, bool):
        connection.adapters.register_dumper(kind, Garbling)


WAYS: dict[str, dict[str, Any]] = {
    "cursors that bind on the client, as Django's": {"cursor_factory": psycopg.ClientCursor},
    "cursors with placeholders of PostgreSQL's form": {"cursor_factory": psycopg.RawCursor},
    "rows that are dictionaries": {"row_factory": psycopg.rows.dict_row},
    "rows that are single values": {"row_factory": psycopg.rows.scalar_row},
    "every statement prepared": {"prepare_threshold": 0},
    "no statement prepared": {"prepare_threshold": None},
    "another encoding": {"client_encoding": "LATIN1"},
}


@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS.keys())
def test_the_ways_of_the_callers_connection_do_not_matter(
    ledger: Ledger, conninfo: str, ways: dict[str, Any]
) -> None:
    with psycopg.connect(conninfo, **ways) as connection:
        join(ledger, connection)
    expect_committed(ledger)


def test_the_callers_own_adapters_do_not_matter(ledger: Ledger, conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection:
        _garbled_adapters(connection)
        join(ledger, connection)
        assert connection.execute("SELECT 1::bigint").fetchone() == ("garbled",)
    expect_committed(ledger)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("level", list(psycopg.IsolationLevel), ids=lambda level: level.name)
def test_a_transaction_of_any_isolation_is_joined(
    ledger: Ledger, conninfo: str, level: psycopg.IsolationLevel, autocommit: bool
) -> None:
    with psycopg.connect(conninfo, autocommit=autocommit) as connection:
        connection.isolation_level = level
        with connection.transaction():
            join(ledger, connection)
    expect_committed(ledger)


# -- in a pipeline, where results and errors come later --


@pytest.fixture
def pipelined(conninfo: str) -> Iterator[Connection]:
    with psycopg.connect(conninfo) as connection, connection.pipeline():
        yield connection
        connection.rollback()


def test_a_pipeline_is_joined(ledger: Ledger, conninfo: str) -> None:
    with psycopg.connect(conninfo) as connection, connection.pipeline():
        before = connection.execute("SELECT 'sent before'")
        join(ledger, connection)
        after = connection.execute("SELECT 'sent after'")
        assert (before.fetchone(), after.fetchone()) == (("sent before",), ("sent after",))
    expect_committed(ledger)


def test_a_refused_enqueue_leaves_a_pipelines_transaction_usable(
    ledger: Ledger, pipelined: Connection
) -> None:
    ledger.enqueue([NewJob("known", "text")])
    with pytest.raises(IdentityConflict):
        ledger.enqueue([NewJob("new", "text"), NewJob("known", "another")], connection=pipelined)
    ledger.enqueue([NewJob("later", "text")], connection=pipelined)
    pipelined.commit()
    assert (ledger.get_job("new"), ledger.get_job("later") is not None) == (None, True)


def test_a_statement_that_fails_within_a_pipeline_leaves_its_transaction_usable(
    ledger: Ledger, pipelined: Connection, sql: Callable[..., Any]
) -> None:
    sql("ALTER TABLE fencepost_jobs ADD CONSTRAINT no_mail CHECK (queue <> 'mail')")
    try:
        with pytest.raises(Exception, match="no_mail"):
            ledger.enqueue([NewJob("new", "text", queue="mail")], connection=pipelined)
        ledger.enqueue([NewJob("later", "text")], connection=pipelined)
        pipelined.commit()
    finally:  # later tests use the same schema, emptied
        pipelined.rollback()
        sql("ALTER TABLE fencepost_jobs DROP CONSTRAINT no_mail")
    assert (ledger.get_job("new"), ledger.get_job("later") is not None) == (None, True)


def test_what_failed_in_the_callers_pipeline_before_is_the_callers_own_error(
    ledger: Ledger, pipelined: Connection
) -> None:
    pipelined.execute("SELECT FROM no_such_table")
    with pytest.raises(psycopg.errors.UndefinedTable):
        ledger.enqueue([NewJob("a", "text")], connection=pipelined)


def test_a_pipeline_without_a_transaction_is_refused(ledger: Ledger, conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection, connection.pipeline():
        connection.execute("SELECT 1")
        with pytest.raises(InvalidInput, match="begin one first"):
            ledger.enqueue([NewJob("a", "text")], connection=connection)


# -- what is no connection of psycopg's --


def test_a_wrapper_of_a_connection_is_refused_and_told_how_to_unwrap_it(ledger: Ledger) -> None:
    class DatabaseWrapper:
        connection: Any = None

    with pytest.raises(InvalidInput, match=r"DatabaseWrapper.*connection\.connection"):
        ledger.enqueue([NewJob("a", "text")], connection=DatabaseWrapper())


def join(ledger: Ledger, connection: Connection) -> None:
    """Enqueue a known and a new job in the caller's transaction, and another one in a part of it that is undone."""
    ledger.enqueue(JOBS[:1])
    answers = ledger.enqueue(JOBS, connection=connection)
    assert [answer.created for answer in answers] == [False, True]
    with connection.transaction():
        ledger.enqueue([NewJob("undone", "text")], connection=connection)
        raise psycopg.Rollback
    assert ledger.get_job("new") is None


def expect_committed(ledger: Ledger) -> None:
    """The transaction that ``join`` was a part of has come, whole."""
    job = ledger.get_job("new")
    assert job is not None
    assert (job.queue, job.priority, job.run_at_ms) == ("mail", -3, 9)
    assert ledger.read_inputs(["new"])["new"].text == JOBS[1].text
    assert ledger.get_job("undone") is None
