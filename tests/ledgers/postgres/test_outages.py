"""Connections and servers that go away: what was committed stays, what was not is not there, and work goes on."""

from __future__ import annotations

import logging
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from fencepost.core import (
    ClaimRequest,
    Job,
    JobQuery,
    Ledger,
    LedgerBusy,
    LedgerFailed,
    NewJob,
    Receipt,
    Settlement,
)
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.ledgers.postgres.watch import SHORT_SESSION_S
from fencepost.core.testing import Store

from tests.ledgers.postgres.wire import Wire, through
from tests.postgres_server import Server, server
from tests.waiting import until
from tests.worker.doubles import Acting
from tests.worker.test_service import following

LIMIT_S = 60.0
COMMIT = b"COMMIT\0"
"""With its end, because a BEGIN may say READ COMMITTED."""


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    wire = Wire(postgres_url)
    yield wire
    wire.flowing.set()
    wire.close()


@pytest.fixture
def far(wire: Wire, url: str, ledger: Ledger) -> Iterator[PostgresLedger]:
    """The same ledger by way of the wire."""
    with PostgresLedger(through(url, wire.port)) as far:
        far.counts()
        yield far


def claim(ledger: Ledger, now_ms: int, limit: int = 9) -> list[Job]:
    return ledger.claim(
        ClaimRequest(claimant="me", lease_ms=1_000, max_attempts=9, limit=limit), now_ms=now_ms
    )


def batch(jobs: list[Job]) -> list[Settlement]:
    return [Settlement(job.id, job.version, Receipt(job.id, "0" * 64, {"n": 1})) for job in jobs]


def terminate(sql: Callable[..., Any], which: str) -> int:
    """End sessions behind their clients' backs; how many."""
    return len(
        sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE pid <> pg_backend_pid() AND datname = current_database() AND {which}"
        )
    )


def end_silent_transactions(sql: Callable[..., Any]) -> None:
    """End sessions whose clients are silent in a transaction, as a server does by its keepalives or time-outs."""
    terminate(sql, "wait_event = 'ClientRead' AND xact_start < clock_timestamp() - interval '5 s'")


# -- one connection --


def test_a_claim_cut_off_before_its_commit_takes_nothing(
    ledger: Ledger, far: PostgresLedger, wire: Wire
) -> None:
    ledger.enqueue([NewJob("a", "x"), NewJob("b", "x")])
    wire.cut_at(COMMIT, let_through=False)
    with pytest.raises(LedgerFailed):
        claim(far, 10)
    assert wire.cut_off.wait(LIMIT_S)
    until(lambda: ledger.counts()["queued"] == 2)
    assert [(job.id, job.attempts) for job in claim(far, 20)] == [("a", 1), ("b", 1)]


def test_a_claim_whose_answer_is_lost_has_taken_what_lapses_later(
    ledger: Ledger, far: PostgresLedger, wire: Wire
) -> None:
    ledger.enqueue([NewJob("a", "x")])
    wire.cut_at(COMMIT, let_through=True)
    with pytest.raises(LedgerFailed):
        claim(far, 10)
    until(lambda: ledger.counts()["running"] == 1)
    assert claim(far, 1_009) == []
    assert [(job.id, job.version, job.attempts) for job in claim(far, 1_010)] == [("a", 3, 2)]


def test_a_settlement_cut_off_before_its_commit_leaves_neither_receipt_nor_completion(
    ledger: Ledger, far: PostgresLedger, wire: Wire
) -> None:
    ledger.enqueue([NewJob("a", "x"), NewJob("b", "x")])
    settlements = batch(claim(far, 10))
    wire.cut_at(COMMIT, let_through=False)
    with pytest.raises(LedgerFailed):
        far.settle(settlements, now_ms=20)
    assert wire.cut_off.wait(LIMIT_S)
    assert ledger.receipts(["a", "b"]) == {}
    assert ledger.counts()["running"] == 2
    assert [item.completed for item in far.settle(settlements, now_ms=30)] == [True, True]


def test_a_settlement_whose_answer_is_lost_stands(ledger: Ledger, far: PostgresLedger, wire: Wire) -> None:
    ledger.enqueue([NewJob("a", "x")])
    settlements = batch(claim(far, 10))
    wire.cut_at(COMMIT, let_through=True)
    with pytest.raises(LedgerFailed):
        far.settle(settlements, now_ms=20)
    until(lambda: ledger.counts()["completed"] == 1)
    (again,) = far.settle(settlements, now_ms=30)
    assert (again.completed, again.reused, again.conflict) == (False, True, False)
    job = far.get_job("a")
    assert job is not None
    assert (job.state, job.version) == ("completed", 1), "by which its worker knows it for its own"


def test_an_enqueue_cut_off_is_all_there_or_not_at_all_and_may_be_sent_again(
    ledger: Ledger, far: PostgresLedger, wire: Wire
) -> None:
    request = [NewJob(f"job-{n}", "x") for n in range(50)]
    for let_through in (False, True):
        wire.cut_at(COMMIT, let_through=let_through)
        with pytest.raises(LedgerFailed):
            far.enqueue(request)
        assert wire.cut_off.wait(LIMIT_S)
        until(lambda: ledger.counts()["queued"] == (50 if let_through else 0))  # noqa: B023 - called at once
    assert not any(answer.created for answer in far.enqueue(request))


def test_connections_that_were_ended_while_they_rested_are_replaced_unseen(
    far: PostgresLedger, sql: Callable[..., Any]
) -> None:
    far.enqueue([NewJob("a", "x")])
    (resting,) = far._database._pool._idle
    assert terminate(sql, "state = 'idle'") >= 1
    until(lambda: select.select([resting], [], [], 0)[0])  # the news has come through the wire
    assert far.counts()["queued"] == 1
    assert claim(far, 10)[0].id == "a"


def test_all_connections_in_use_is_busy(store: Store, url: str, ledger: Ledger) -> None:
    with PostgresLedger(url, max_connections=1, timeout_s=0.05) as narrow:
        narrow.counts()
        held = narrow._database._pool.take()
        with pytest.raises(LedgerBusy, match="max_connections"):
            narrow.counts()
        narrow._database._pool.put(held)
        assert narrow.counts()["queued"] == 0


def test_a_closed_ledger_says_so(store: Store) -> None:
    ledger = store.open()
    ledger.counts()
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerFailed, match="closed"):
        ledger.counts()


# -- waking --


def quiet(ledger: Ledger) -> None:
    """Claim until nothing is news any more."""
    claim(ledger, 10)
    while ledger.wait(0.01):
        claim(ledger, 10)


def test_a_listener_that_was_cut_off_listens_again(
    ledger: Ledger, url: str, sql: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with PostgresLedger(url) as waiting:
        quiet(waiting)
        with caplog.at_level(logging.WARNING, "fencepost.postgres"):
            assert terminate(sql, "query LIKE 'LISTEN%'") >= 1
            assert waiting.wait(LIMIT_S), "something may have been missed"
        assert [record for record in caplog.records if "not listening" in record.getMessage()]
        until(lambda: (claim(waiting, 10), waiting.wait(0.05), waiting._watch._connection)[2] is not None)
        quiet(waiting)
        ledger.enqueue([NewJob("a", "x")])
        assert waiting.wait(LIMIT_S)


def test_a_listener_that_the_server_ends_for_idleness_listens_again_without_a_warning(
    ledger: Ledger, url: str, sql: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with PostgresLedger(url) as waiting:
        quiet(waiting)
        waiting._watch._listening_since -= SHORT_SESSION_S  # as if it had been idle for long
        with caplog.at_level(logging.WARNING, "fencepost.postgres"):
            assert terminate(sql, "query LIKE 'LISTEN%'") >= 1
            assert waiting.wait(LIMIT_S), "something may have been missed"
            quiet(waiting)
            assert waiting._watch._connection is not None
            ledger.enqueue([NewJob("a", "x")])
            assert waiting.wait(LIMIT_S)
        assert caplog.records == []


def test_without_listening_news_is_looked_for(ledger: Ledger, url: str) -> None:
    with PostgresLedger(url, listen=False) as waiting:
        quiet(waiting)
        ledger.enqueue([NewJob("a", "x")])
        assert waiting.wait(LIMIT_S)
        assert waiting._watch._connection is None


def test_a_commit_that_nobody_waits_for_wakes_nobody(ledger: Ledger, url: str) -> None:
    with PostgresLedger(url) as waiting:
        ledger.enqueue([NewJob("a", "x"), NewJob("b", "x")], now_ms=0)
        jobs = claim(ledger, 10)
        quiet(waiting)
        assert waiting._watch._connection is not None
        ledger.heartbeat("a", 1, extend_ms=2_000, now_ms=20)
        ledger.settle(batch(jobs[:1]), now_ms=20)
        ledger.fail("b", 1, error="no", now_ms=20)
        assert not waiting.wait(0.2)
        ledger.redrive("b", now_ms=30)
        assert waiting.wait(LIMIT_S)


def test_a_busy_worker_fetches_its_notifications(ledger: Ledger, url: str) -> None:
    """Else they would pile up in the server until no commit of an enqueue succeeds."""
    with PostgresLedger(url) as busy:
        quiet(busy)
        connection = busy._watch._connection
        assert connection is not None
        for n in range(20):
            ledger.enqueue([NewJob(f"job-{n}", "x")])
        until(lambda: (claim(busy, 10, limit=1), not [*connection.notifies(timeout=0)])[1])


def test_several_threads_wait_for_one_ledger(ledger: Ledger, url: str) -> None:
    with PostgresLedger(url) as waiting:
        quiet(waiting)
        woken = threading.Semaphore(0)

        def wait() -> None:
            if waiting.wait(LIMIT_S):
                woken.release()

        threads = [threading.Thread(target=wait) for _ in range(5)]
        for thread in threads:
            thread.start()
        ledger.enqueue([NewJob("a", "x")])
        for thread in threads:
            thread.join()
        assert all(woken.acquire(blocking=False) for _ in threads)


# -- the whole server --


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    with server(durable=True) as own:
        yield own


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restarted", "crashed"])
def test_workers_ride_over_a_restart_of_the_server(own_server: Server, how: signal.Signals) -> None:
    schema = f"restart_{how.name.lower()}"
    applied: Counter[str] = Counter()
    lock = threading.Lock()

    def effect(request: Any) -> dict[str, str]:
        with lock:
            applied[request.id] += 1
        time.sleep(0.002)
        return {"done": request.id}

    with (
        PostgresLedger(own_server.url, schema=schema) as ledger,
        PostgresLedger(own_server.url, schema=schema) as one,
        PostgresLedger(own_server.url, schema=schema) as other,
    ):
        names = [f"job-{n}" for n in range(600)]
        ledger.enqueue([NewJob(name, "x", effect="act") for name in names])
        with (
            following(one, Acting(effect), lease_ms=2_000, max_attempts=99) as first,
            following(other, Acting(effect), lease_ms=2_000, max_attempts=99) as second,
        ):
            until(lambda: len(applied) > 50)
            own_server.stop(how)
            until(lambda: first.worker.outages and second.worker.outages)
            own_server.start()
            until(lambda: ledger.counts()["completed"] == len(names))
            # They listen again: news comes, and not only with the next look.
            until(lambda: first.worker.idle_since and second.worker.idle_since)
            until(lambda: one._watch._connection is not None or other._watch._connection is not None)
            ledger.enqueue([NewJob("after", "x", effect="act")])
            until(lambda: ledger.counts()["completed"] == len(names) + 1)
        told = Counter(
            event.id for each in (first, second) for event in each.events if event.state == "completed"
        )
        assert told == Counter(dict.fromkeys([*names, "after"], 1))
        assert len(ledger.receipts(names)) == len(names)


def test_two_machines_one_of_which_is_cut_off_in_the_middle_of_a_batch(
    ledger: Ledger, url: str, wire: Wire, sql: Callable[..., Any]
) -> None:
    """Its leases lapse, the other finishes, its late completions are refused, and it recovers with the network."""
    names = [f"job-{n}" for n in range(30)]
    ledger.enqueue([NewJob(name, "x", effect="act") for name in names])
    stuck, cut = threading.Semaphore(0), threading.Event()

    def far_effect(request: Any) -> dict[str, str]:
        stuck.release()
        assert cut.wait(LIMIT_S)
        return {"done": request.id}

    def all_are_completed() -> bool:
        # The cut may have come between two statements, whose transaction keeps its rows until its session ends.
        end_silent_transactions(sql)
        return ledger.counts()["completed"] == len(names)

    with (
        PostgresLedger(through(url, wire.port)) as far_ledger,
        PostgresLedger(url) as near_ledger,
        following(
            far_ledger, Acting(far_effect), lease_ms=1_000, concurrency=4, max_attempts=99
        ) as far_group,
    ):
        for _ in range(4):
            assert stuck.acquire(timeout=LIMIT_S)
        held = {job.id for job in ledger.jobs(JobQuery(states=["running"])).jobs}
        assert len(held) >= 4
        wire.flowing.clear()
        with following(near_ledger, Acting(), lease_ms=1_000, max_attempts=99) as near_group:
            until(all_are_completed)
        cut.set()
        wire.reset()
        wire.flowing.set()
        until(lambda: len([event for event in far_group.events if event.state == "lost"]) >= 4)
        ledger.enqueue([NewJob("after", "x", effect="act")])
        until(lambda: any(event.id == "after" for event in far_group.events))
    near = Counter(event.id for event in near_group.events if event.state == "completed")
    far = Counter(event.id for event in far_group.events if event.state == "completed")
    assert near + far == Counter(dict.fromkeys([*names, "after"], 1)), "each was completed by one, once"
    assert held <= set(near)
    assert set(far) == {"after"}


def test_a_session_that_is_ended_in_the_middle_of_a_transaction_rolls_it_back(
    ledger: Ledger, url: str, sql: Callable[..., Any]
) -> None:
    connection = psycopg.connect(PostgresLedger(url)._database.address.conninfo)
    ledger.enqueue([NewJob("a", "x")], connection=connection)
    assert terminate(sql, "state = 'idle in transaction'") == 1
    with pytest.raises(psycopg.OperationalError):
        connection.commit()
    assert ledger.get_job("a") is None
    assert ledger.enqueue([NewJob("a", "another text")])[0].created
