"""Enqueue inside of the caller's own transaction: what it needs, and that it leaves everything else alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fencepost.core import (
    ClaimRequest,
    IdentityConflict,
    InvalidInput,
    LedgerBusy,
    LedgerSealed,
    NewJob,
)
from fencepost.core.ledgers.sqlite import SqliteLedger

Open = Callable[..., SqliteLedger]


@pytest.fixture
def mine(path: Path) -> Iterator[sqlite3.Connection]:
    """The caller's connection, as sqlite3 makes it by default, with a table of the caller's."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (number INTEGER)")
    connection.commit()
    yield connection
    connection.close()


def ids(ledger: SqliteLedger) -> list[str]:
    return [job.id for job in ledger.jobs().jobs]


def test_order_and_job_are_committed_together(ledger: SqliteLedger, mine: sqlite3.Connection) -> None:
    ledger.counts()
    mine.execute("INSERT INTO orders VALUES (1)")
    assert ledger.enqueue([NewJob("a", "text")], connection=mine)[0].created
    assert ids(ledger) == []
    mine.commit()
    assert ids(ledger) == ["a"]


def test_order_and_job_are_rolled_back_together(ledger: SqliteLedger, mine: sqlite3.Connection) -> None:
    mine.execute("INSERT INTO orders VALUES (1)")
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.rollback()
    assert ids(ledger) == []
    assert mine.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    assert ledger.read_inputs(["a"]) == {}


def test_a_connection_of_implicit_transactions_begins_one(
    ledger: SqliteLedger, mine: sqlite3.Connection
) -> None:
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    assert mine.in_transaction
    mine.rollback()
    assert ids(ledger) == []


def test_a_connection_without_transactions_must_have_begun_one(ledger: SqliteLedger, path: Path) -> None:
    mine = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(InvalidInput, match="BEGIN IMMEDIATE"):
        ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.execute("BEGIN IMMEDIATE")
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.execute("COMMIT")
    assert ids(ledger) == ["a"]
    mine.close()


def test_a_conflict_stores_nothing_and_leaves_the_transaction_to_the_caller(
    ledger: SqliteLedger, mine: sqlite3.Connection
) -> None:
    ledger.enqueue([NewJob("b", "text")])
    mine.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(IdentityConflict):
        ledger.enqueue([NewJob("a", "text"), NewJob("b", "changed")], connection=mine)
    assert mine.in_transaction
    mine.commit()
    assert mine.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    assert ids(ledger) == ["b"]
    assert ledger.read_inputs(["a"]) == {}


def test_the_callers_factories_are_neither_used_nor_changed(
    ledger: SqliteLedger, mine: sqlite3.Connection
) -> None:
    ledger.enqueue([NewJob("a", "text")])
    mine.row_factory = sqlite3.Row
    mine.text_factory = bytes
    answers = ledger.enqueue([NewJob("a", "text"), NewJob("b", "text")], connection=mine)
    mine.commit()
    assert [answer.created for answer in answers] == [False, True]
    assert mine.row_factory is sqlite3.Row
    assert mine.text_factory is bytes


def test_the_callers_savepoints_stay_usable(ledger: SqliteLedger, mine: sqlite3.Connection) -> None:
    mine.execute("INSERT INTO orders VALUES (1)")
    mine.execute("SAVEPOINT fencepost")  # the same name as ours, even
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.execute("ROLLBACK TO fencepost")
    ledger.enqueue([NewJob("b", "text")], connection=mine)
    mine.commit()
    assert ids(ledger) == ["b"]


def test_a_connection_to_another_file_is_refused(ledger: SqliteLedger, tmp_path: Path) -> None:
    for other in (sqlite3.connect(tmp_path / "other.db"), sqlite3.connect(":memory:")):
        other.execute("CREATE TABLE t (n)")
        with pytest.raises(InvalidInput, match=r"not to .*jobs\.db"):
            ledger.enqueue([NewJob("a", "text")], connection=other)
        assert not other.in_transaction
        other.close()


def test_what_is_no_connection_is_refused(ledger: SqliteLedger) -> None:
    with pytest.raises(InvalidInput, match=r"sqlite3\.Connection, not builtins\.str"):
        ledger.enqueue([NewJob("a", "text")], connection="jobs.db")


def test_a_transaction_that_has_only_read_and_is_outdated_is_busy(
    ledger: SqliteLedger, mine: sqlite3.Connection, path: Path
) -> None:
    """An upgrade of a snapshot that others have left behind can never succeed, however long it waits."""
    ledger.counts()
    mine.isolation_level = None
    mine.execute("BEGIN")
    mine.execute("SELECT * FROM orders").fetchall()
    ledger.enqueue([NewJob("b", "text")])
    with pytest.raises(LedgerBusy):
        ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.execute("ROLLBACK")
    assert ids(ledger) == ["b"]


def test_a_sealed_ledger_takes_nothing_this_way_either(
    ledger: SqliteLedger, mine: sqlite3.Connection
) -> None:
    ledger.seal("elsewhere")
    with pytest.raises(LedgerSealed, match="elsewhere"):
        ledger.enqueue([NewJob("a", "text")], connection=mine)


def test_an_enqueue_in_a_transaction_wakes_at_its_commit(
    ledger: SqliteLedger, mine: sqlite3.Connection
) -> None:
    ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1))
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    assert not ledger.wait(0)
    mine.commit()
    assert ledger.wait(30)


def test_the_first_job_of_all_makes_the_ledger_inside_of_the_transaction(
    ledger: SqliteLedger, mine: sqlite3.Connection
) -> None:
    mine.execute("INSERT INTO orders VALUES (1)")
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.rollback()
    assert mine.execute("SELECT name FROM sqlite_schema").fetchall() == [("orders",)]
    mine.execute("INSERT INTO orders VALUES (1)")
    ledger.enqueue([NewJob("a", "text")], connection=mine)
    mine.commit()
    assert ids(ledger) == ["a"]
