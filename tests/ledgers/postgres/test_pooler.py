"""Behind a transaction pooler: each transaction another session, and nothing that one remembers outlives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from fencepost.core import (
    Ledger,
    NewJob,
    open_ledger,
    testing,
)
from fencepost.core.testing import NewStore, Store

from tests.ledgers.postgres.pooler import Pooler
from tests.ledgers.postgres.wire import through


@pytest.fixture
def pooler(postgres_url: str) -> Iterator[Pooler]:
    pooler = Pooler(postgres_url)
    yield pooler
    pooler.close()


@pytest.fixture
def new_store(postgres_stores: Callable[[Path], Store], pooler: Pooler) -> NewStore:
    def fresh() -> Store:
        store = postgres_stores(Path())
        assert store.name is not None
        name = f"{through(store.name, pooler.port)}&fencepost_listen=off"
        return Store(open=lambda: open_ledger(name), name=name)

    return fresh


class TestEnqueue(testing.EnqueueContract):
    pass


class TestClaim(testing.ClaimContract):
    pass


class TestSettling(testing.ReapContract):
    pass


class TestReceipts(testing.ReceiptContract):
    pass


class TestSchedules(testing.ScheduleContract):
    pass


class TestMoving(testing.TransferContract):
    pass


class TestWaiting(testing.WaitContract):
    pass


class TestConcurrency(testing.ConcurrencyContract):
    pass


def test_the_pooler_discards_what_a_session_remembers(pooler: Pooler) -> None:
    with psycopg.connect(pooler.url, autocommit=True) as connection:
        connection.execute("SET application_name = 'remembered'")
        assert connection.execute("SHOW application_name").fetchone() == ("",)
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            connection.execute("SELECT 1", prepare=True)


def test_each_transaction_is_given_another_session(pooler: Pooler) -> None:
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as connection:
        pids = {connection.execute("SELECT pg_backend_pid()").fetchone() for _ in range(6)}
    assert len(pids) == 3


def test_an_idle_ledger_holds_no_session(new_store: NewStore, pooler: Pooler) -> None:
    """More ledgers than sessions: none of them keeps one to itself."""
    store = new_store()
    ledgers: list[Ledger] = [store.open() for _ in range(7)]
    for n, ledger in enumerate(ledgers):
        ledger.enqueue([NewJob(f"job-{n}", "text")])
    assert ledgers[0].counts()["queued"] == 7
    for ledger in ledgers:
        ledger.close()
