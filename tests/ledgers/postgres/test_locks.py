"""What one transaction holds and others want: claims pass over it, moves wait for it, a seal waits for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from fencepost.core import (
    ClaimRequest,
    InvalidInput,
    Job,
    Ledger,
    LedgerBusy,
    LedgerSealed,
    NewJob,
    Receipt,
    Settlement,
)
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.testing import Store

from tests.waiting import until

LIMIT_S = 60.0


def add(ledger: Ledger, *ids: str, **options: Any) -> None:
    ledger.enqueue([NewJob(id, f"text of {id}", **options) for id in ids], now_ms=0)


def claim(ledger: Ledger, limit: int = 1, now_ms: int = 10, **options: Any) -> list[Job]:
    return ledger.claim(
        ClaimRequest(claimant="me", lease_ms=1_000, max_attempts=3, limit=limit, **options), now_ms=now_ms
    )


def ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


@contextmanager
def holding(url: str, statement: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of somebody else that has run this."""
    address = parse_address(url)
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f"SET LOCAL search_path = {address.schema}".encode())
        connection.execute(statement.encode())
        yield connection
        connection.rollback()


@contextmanager
def waiting(call: Callable[[], Any], sql: Callable[..., Any]) -> Iterator[Future[Any]]:
    """The call in a thread of its own, once it waits for a lock."""
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(call)

        def waits() -> Any:
            assert not future.done(), f"it did not wait: {future.result()}"
            return sql("SELECT 1 FROM pg_locks WHERE NOT granted")

        until(waits)
        yield future


# -- claims --


def test_a_claim_passes_over_what_another_holds(ledger: Ledger, url: str) -> None:
    add(ledger, "a", "b", "c", "d")
    with holding(url, "SELECT FROM fencepost_jobs WHERE id IN ('a', 'c') FOR UPDATE"):
        assert ids(claim(ledger, 9)) == ["b", "d"]
    assert ids(claim(ledger, 9)) == ["a", "c"]


def test_a_claim_of_several_lanes_takes_from_another_what_it_cannot_have(ledger: Ledger, url: str) -> None:
    add(ledger, "first-1", "first-2", queue="first", priority=9)
    add(ledger, "second-1", "second-2", "second-3", queue="second")
    with holding(url, "SELECT FROM fencepost_jobs WHERE queue = 'first' FOR UPDATE"):
        assert ids(claim(ledger, 2)) == ["second-1", "second-2"]
    assert ids(claim(ledger, 9)) == ["first-1", "first-2", "second-3"]


def test_a_claim_of_several_lanes_takes_no_more_than_its_limit(ledger: Ledger, url: str) -> None:
    for queue in "abc":
        add(ledger, *(f"{queue}-{n}" for n in range(5)), queue=queue)
    with holding(url, "SELECT FROM fencepost_jobs WHERE id = 'a-0' FOR UPDATE"):
        assert ids(claim(ledger, 4)) == ["a-1", "a-2", "a-3", "a-4"]
    assert len(claim(ledger, 3)) == 3


def test_a_settling_passes_over_what_another_holds(ledger: Ledger, url: str) -> None:
    add(ledger, "a", "b")
    claim(ledger, 2)
    with holding(url, "SELECT FROM fencepost_jobs WHERE id = 'a' FOR UPDATE"):
        assert ids(claim(ledger, 9, now_ms=2_000)) == ["b"]
    assert ids(claim(ledger, 9, now_ms=2_000)) == ["a"]


def test_a_claim_sees_what_became_of_a_job_that_it_waited_for(ledger: Ledger, url: str, sql: Any) -> None:
    """A promotion waits: the job is ready for whoever asks, even while another is about to say so."""
    add(ledger, "a", run_at_ms=5)
    with (
        holding(url, "UPDATE fencepost_jobs SET waiting = 0") as other,
        waiting(lambda: ids(claim(ledger)), sql) as claimed,
    ):
        other.commit()
        assert claimed.result(LIMIT_S) == ["a"]


# -- moves --


def test_a_completion_waits_for_a_reclaim_and_is_refused(ledger: Ledger, url: str, sql: Any) -> None:
    add(ledger, "a")
    version = claim(ledger)[0].version
    with (
        holding(
            url, "UPDATE fencepost_jobs SET state = 'queued', version = version + 1, lease_until_ms = 0"
        ) as other,
        waiting(lambda: ledger.complete("a", version, now_ms=20), sql) as completed,
    ):
        other.commit()
        assert completed.result(LIMIT_S) is False


def test_a_completion_waits_for_a_reclaim_that_comes_to_nothing(ledger: Ledger, url: str, sql: Any) -> None:
    add(ledger, "a")
    version = claim(ledger)[0].version
    with (
        holding(
            url, "UPDATE fencepost_jobs SET state = 'queued', version = version + 1, lease_until_ms = 0"
        ) as other,
        waiting(lambda: ledger.complete("a", version, now_ms=20), sql) as completed,
    ):
        other.rollback()
        assert completed.result(LIMIT_S) is True


def test_a_batch_whose_receipts_another_is_publishing_finds_them(ledger: Ledger, url: str, sql: Any) -> None:
    add(ledger, "a", "b")
    jobs = claim(ledger, 2)
    batch = [Settlement(job.id, job.version, Receipt(job.id, "0" * 64, {"n": 1})) for job in jobs]
    theirs = """INSERT INTO fencepost_effects VALUES ('a', '{"id":"a","input_sha256":"%s","n":1}')""" % (
        "0" * 64
    )
    with holding(url, theirs) as other, waiting(lambda: ledger.settle(batch, now_ms=20), sql) as settled:
        other.commit()
        answers = {item.id: (item.completed, item.reused) for item in settled.result(LIMIT_S)}
    assert answers == {"a": (True, True), "b": (True, False)}


def test_an_enqueue_that_waits_for_the_same_job_finds_it_made(ledger: Ledger, url: str, sql: Any) -> None:
    with psycopg.connect(parse_address(url).conninfo) as other:
        ledger.enqueue([NewJob("b", "text"), NewJob("a", "text")], connection=other)
        mine = [NewJob("a", "text"), NewJob("c", "text")]
        with waiting(lambda: ledger.enqueue(mine), sql) as enqueued:
            other.commit()
            answers = {answer.id: answer.created for answer in enqueued.result(LIMIT_S)}
    assert answers == {"a": False, "c": True}
    assert ledger.counts()["queued"] == 3


def test_an_enqueue_that_waits_for_a_purged_job_finds_it_made_anew(
    ledger: Ledger, url: str, sql: Any
) -> None:
    add(ledger, "a", "b")
    for id in ("a", "b"):
        ledger.cancel(id)
        ledger.purge(id)
    with psycopg.connect(parse_address(url).conninfo) as other:
        again = [NewJob(id, f"text of {id}") for id in ("b", "a")]
        ledger.enqueue(again, connection=other)
        with waiting(lambda: ledger.enqueue(again[::-1]), sql) as enqueued:
            other.commit()
            assert not any(answer.created for answer in enqueued.result(LIMIT_S))
    assert [job.version for job in ledger.jobs().jobs] == [2, 2]


def test_a_lock_that_is_not_had_in_time_is_busy_and_changes_nothing(
    ledger: Ledger, url: str, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(ledger, "a")
    with PostgresLedger(url) as hasty:
        hasty.counts()
        statements: Any = dict(hasty._database.statements)
        statements["opening"] = statements["opening"].replace(b"'30s'", b"'50ms'")
        monkeypatch.setattr(hasty._database, "statements", statements)
        with (
            holding(url, "SELECT FROM fencepost_jobs FOR UPDATE"),
            pytest.raises(LedgerBusy, match="lock timeout"),
        ):
            hasty.cancel("a")
        assert hasty.cancel("a"), "the connection is as good as new"


# -- seal --


def test_a_seal_waits_for_whoever_is_writing_and_then_stops_all(ledger: Ledger, url: str, sql: Any) -> None:
    with psycopg.connect(parse_address(url).conninfo) as other:
        ledger.enqueue([NewJob("a", "text")], connection=other)
        with waiting(lambda: ledger.seal("elsewhere"), sql) as sealed:
            other.commit()
            sealed.result(LIMIT_S)
    assert ids(ledger.jobs().jobs) == ["a"], "what was on its way is in the ledger that is copied"
    with pytest.raises(LedgerSealed, match="elsewhere"):
        add(ledger, "b")


def test_two_seals_at_once_agree(store: Store) -> None:
    with store.open() as one, store.open() as other:
        start, outcomes = threading.Barrier(2), []

        def seal(ledger: Ledger, destination: str) -> None:
            start.wait()
            try:
                ledger.seal(destination)
                outcomes.append(destination)
            except LedgerSealed as error:
                outcomes.append(str(error))

        threads = [threading.Thread(target=seal, args=pair) for pair in ((one, "here"), (other, "there"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = one.sealed_for()
        assert won in outcomes
        assert any("sealed for " + str(won) in outcome for outcome in outcomes)


# -- in the caller's own transaction --


def test_a_connection_without_a_transaction_is_refused(ledger: Ledger, url: str) -> None:
    with (
        psycopg.connect(parse_address(url).conninfo, autocommit=True) as connection,
        pytest.raises(InvalidInput, match="begin one first"),
    ):
        ledger.enqueue([NewJob("a", "text")], connection=connection)
    assert ledger.get_job("a") is None


def test_a_transaction_of_an_autocommitting_connection_is_joined(ledger: Ledger, url: str) -> None:
    with psycopg.connect(parse_address(url).conninfo, autocommit=True) as connection:
        with connection.transaction():
            ledger.enqueue([NewJob("a", "text")], connection=connection)
            assert ledger.get_job("a") is None
        assert ledger.get_job("a") is not None


def test_a_transaction_that_has_failed_is_refused(ledger: Ledger, url: str) -> None:
    with psycopg.connect(parse_address(url).conninfo) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT FROM no_such_table")
        with pytest.raises(InvalidInput, match="roll it back"):
            ledger.enqueue([NewJob("a", "text")], connection=connection)


def test_a_connection_to_another_database_is_refused_and_left_usable(
    ledger: Ledger, url: str, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE elsewhere")
        try:
            conninfo = psycopg.conninfo.make_conninfo(parse_address(url).conninfo, dbname="elsewhere")
            with psycopg.connect(conninfo) as other:
                with pytest.raises(InvalidInput, match="one database"):
                    ledger.enqueue([NewJob("a", "text")], connection=other)
                assert other.execute("SELECT 1").fetchone() == (1,)
        finally:
            connection.execute("DROP DATABASE elsewhere WITH (FORCE)")


def test_the_callers_own_ways_are_left_as_they_are(ledger: Ledger, url: str) -> None:
    with psycopg.connect(
        parse_address(url).conninfo, row_factory=psycopg.rows.dict_row, prepare_threshold=0
    ) as connection:
        ledger.enqueue([NewJob("a", "text")], connection=connection)
        setting = connection.execute("SHOW enable_seqscan").fetchone()
        assert setting == {"enable_seqscan": "on"}


@pytest.mark.parametrize("level", list(psycopg.IsolationLevel), ids=lambda level: level.name)
def test_a_transaction_of_any_isolation_is_joined(ledger: Ledger, url: str, level: Any) -> None:
    add(ledger, "known")
    with psycopg.connect(parse_address(url).conninfo) as connection:
        connection.isolation_level = level
        answers = ledger.enqueue(
            [NewJob("known", "text of known"), NewJob("new", "text")], connection=connection
        )
    assert [answer.created for answer in answers] == [False, True]


def test_whoever_joins_wakes_others_when_they_commit(store: Store, url: str) -> None:
    with store.open() as waiting_ledger, store.open() as other:
        claim(waiting_ledger)
        while waiting_ledger.wait(0.0):
            claim(waiting_ledger)
        with psycopg.connect(parse_address(url).conninfo) as connection:
            other.enqueue([NewJob("a", "text")], connection=connection)
        assert waiting_ledger.wait(LIMIT_S)
