"""The claim's path through its indexes: what it reads, what it leaves alone, and what it never writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    Job,
    JobQuery,
    NewJob,
    Receipt,
    Settlement,
    Stamps,
)
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.ledgers.sqlite import claim as claiming
from fencepost.core.ledgers.sqlite.database import statements
from fencepost.core.model.inputs import text_sha256

Look = Callable[..., list[tuple[Any, ...]]]


def claim(ledger: SqliteLedger, now_ms: int, **options: Any) -> list[Job]:
    return ledger.claim(
        ClaimRequest(**({"claimant": "me", "lease_ms": 100, "max_attempts": 3} | options)), now_ms=now_ms
    )


def ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


class Commits:
    """Whether anything was committed since it was last asked."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._last = self._version()

    def any(self) -> bool:
        before, self._last = self._last, self._version()
        return before != self._last

    def close(self) -> None:
        self._connection.close()

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


@pytest.fixture
def commits(ledger: SqliteLedger, path: Path) -> Iterator[Commits]:
    ledger.counts()
    watcher = Commits(path)
    yield watcher
    watcher.close()


# -- an idle worker must not wake others --


def test_what_finds_nothing_writes_nothing(ledger: SqliteLedger, commits: Commits) -> None:
    ledger.enqueue(
        [
            NewJob("delayed", "text", run_at_ms=9_000),
            NewJob("elsewhere", "text", queue="other"),
            NewJob("running", "text", queue="mine", priority=1),
        ],
        now_ms=0,
    )
    assert ids(claim(ledger, 0, queues=["mine"])) == ["running"]
    assert commits.any()
    assert claim(ledger, 1, queues=["default", "mine"]) == []
    assert claim(ledger, 1, queues=["default", "mine"], effects=["count"]) == []
    assert claim(ledger, 1, queues=["none"]) == []
    assert claim(ledger, 1, queues=[]) == []
    ledger.sweep_expired(now_ms=1)
    ledger.tick(now_ms=1)
    assert ledger.heartbeat("running", 1, now_ms=1)
    assert ledger.heartbeat("running", 1, extend_ms=50, now_ms=1), "the lease reaches farther already"
    assert not ledger.heartbeat("running", 2, extend_ms=50, now_ms=1)
    assert not ledger.complete("running", 2, now_ms=1)
    assert not ledger.cancel("nobody", now_ms=1)
    assert not ledger.resume("mine", now_ms=1)
    ledger.enqueue([NewJob("elsewhere", "text", queue="other")], now_ms=1)
    ledger.publish(Receipt("running", text_sha256("text"), {}))
    assert commits.any()
    ledger.publish(Receipt("running", text_sha256("text"), {}))
    assert not commits.any()


# -- the statements read by their indexes --

FORMS = ("lanes", "passed", "promote", "pick", "reapable", "expired", "purgeable", "next_due")
HOT = (
    *FORMS,
    *(f"{name}_all" for name in FORMS),
    "pauses_of",
    "paused_ahead",
    "pass_over",
    "give_back",
    "forget_pause",
)
ALL_IDS = (
    "known",
    "jobs_of",
    "job_without_input",
    "inputs",
    "receipts",
    "complete",
    "complete_all",
)


@pytest.mark.parametrize("name", HOT + ALL_IDS)
def test_no_hot_statement_walks_through_a_table(ledger: SqliteLedger, name: str) -> None:
    with ledger._database.read() as transaction:
        steps = plan(transaction.connection, statements()[name])
    walks = [step for step in steps if step.startswith("SCAN fencepost") or "AUTOMATIC" in step]
    assert walks == []
    assert any("fencepost_" in step or step.startswith("SEARCH") for step in steps)


@pytest.mark.parametrize("name", ["pick", "pick_all"])
def test_a_pick_sorts_nothing_but_the_few_it_takes(ledger: SqliteLedger, name: str) -> None:
    """One sort merges the lanes' first rows; within a lane the index is the order."""
    with ledger._database.read() as transaction:
        steps = plan(transaction.connection, statements()[name])
    assert sum("TEMP B-TREE" in step for step in steps) == 1


def plan(connection: sqlite3.Connection, statement: str) -> list[str]:
    class Anything(dict[str, None]):
        def __missing__(self, name: str) -> None:
            return None

    parameters: Any = Anything() if ":" in statement else [None] * statement.count("?")
    if "?1" in statement:
        parameters = [None] * max(int(digit) for digit in "123456789" if f"?{digit}" in statement)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]


# -- delayed jobs --


def test_however_many_become_due_at_once_are_claimed_in_their_order(
    ledger: SqliteLedger, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "PROMOTE_LIMIT", 7)
    ledger.enqueue([NewJob(f"job-{n:02}", "text", run_at_ms=1_000 - n) for n in range(30)], now_ms=0)
    ledger.enqueue([NewJob("first", "text", run_at_ms=1_000, priority=1)], now_ms=0)
    assert look("SELECT count(*) FROM fencepost_jobs WHERE waiting = 1") == [(31,)]
    assert claim(ledger, 970) == []
    assert look("SELECT count(*) FROM fencepost_jobs WHERE waiting = 1") == [(31,)]
    assert ids(claim(ledger, 1_000, limit=4)) == ["first", "job-29", "job-28", "job-27"]
    assert look("SELECT count(*) FROM fencepost_jobs WHERE waiting = 1") == [(0,)]


def test_a_job_that_was_let_in_is_not_claimed_by_a_clock_that_stepped_back(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("a", "text", run_at_ms=500), NewJob("b", "text", run_at_ms=500)], now_ms=0)
    assert ids(claim(ledger, 500)) == ["a"]
    assert claim(ledger, 499) == []
    assert ledger.next_due_ms(queues=["default"]) == 500
    assert ids(claim(ledger, 500)) == ["b"]


def test_only_the_lanes_that_are_served_are_let_in(ledger: SqliteLedger, look: Look) -> None:
    ledger.enqueue(
        [NewJob("a", "text", run_at_ms=5), NewJob("b", "text", run_at_ms=5, queue="other")], now_ms=0
    )
    claim(ledger, 5, queues=["other"])
    assert look("SELECT id FROM fencepost_jobs WHERE waiting = 1") == [("a",)]


def test_what_is_not_due_yet_stays_out_of_the_claims_index(ledger: SqliteLedger, look: Look) -> None:
    """However it came to be delayed: a backlog of it must not stand in the way of claims."""
    ledger.enqueue([NewJob("later", "text", run_at_ms=9_000), NewJob("due", "text", run_at_ms=5)], now_ms=0)
    ledger.enqueue([NewJob("failing", "text", priority=1)], now_ms=0)
    (job,) = claim(ledger, 1)
    ledger.retry(job.id, job.version, run_at_ms=8_000, error="no", max_attempts=3, now_ms=2)
    assert ids(claim(ledger, 5, limit=9)) == ["due"]
    assert look("SELECT id FROM fencepost_jobs WHERE waiting = 1 ORDER BY id") == [("failing",), ("later",)]


# -- lanes --


def test_a_name_with_a_nul_is_not_read_as_what_stands_before_it(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    assert claim(ledger, 1, queues=["default\0"], effects=["count"]) == []
    assert claim(ledger, 1, queues=["default"], effects=["count\0x"]) == []


def test_the_order_of_claims_holds_across_lanes(ledger: SqliteLedger) -> None:
    jobs = [
        NewJob(f"job-{n:03}", "text", queue=f"q{n % 3}", effect=f"e{n % 2}", priority=(n * 7) % 5)
        for n in range(60)
    ]
    for n, job in enumerate(jobs):
        ledger.enqueue([job], now_ms=(n * 13) % 40)
    order = sorted(range(60), key=lambda n: (-jobs[n].priority, (n * 13) % 40, n))
    claimed = [job.id for _ in range(10) for job in claim(ledger, 100, limit=7)]
    assert claimed == [jobs[n].id for n in order]


@pytest.mark.parametrize("queues", [None, ["q1"], ["q1", "q2"], ["q2", "q2", "none"], []])
@pytest.mark.parametrize("effects", [None, ["e1"], ["e0", "e1"], []])
def test_a_claim_serves_the_lanes_it_names(
    ledger: SqliteLedger, queues: list[str] | None, effects: list[str] | None
) -> None:
    jobs = [
        NewJob(f"{queue}-{effect}", "text", queue=queue, effect=effect)
        for queue in ("q1", "q2", "q3")
        for effect in ("e0", "e1", "e2")
    ]
    ledger.enqueue(jobs, now_ms=0)
    served = [
        job.id
        for job in jobs
        if (queues is None or job.queue in queues) and (effects is None or job.effect in effects)
    ]
    assert ids(claim(ledger, 0, limit=20, queues=queues, effects=effects)) == served


def test_lanes_are_found_wherever_their_jobs_are(ledger: SqliteLedger) -> None:
    """Ready, delayed, running: each alone makes a lane that has to be settled."""
    ledger.enqueue([NewJob("ready", "text", queue="q1")], now_ms=0)
    ledger.enqueue([NewJob("delayed", "text", queue="q2", run_at_ms=9_000, expires_at_ms=50)], now_ms=0)
    ledger.enqueue([NewJob("running", "text", queue="q3")], now_ms=0)
    claim(ledger, 0, queues=["q3"])
    assert ids(claim(ledger, 100, limit=9)) == ["ready", "running"]
    assert ledger.counts()["dead"] == 1


def test_a_jobs_own_limit_and_the_workers_are_told_apart_in_a_lane(ledger: SqliteLedger) -> None:
    """Jobs queued with used-up attempts, as another program or a lower limit leaves them."""
    ledger.enqueue([NewJob("plain", "text"), NewJob("own", "text", stamps=Stamps(max_attempts=5))], now_ms=0)
    for now_ms in (0, 200):
        for job in claim(ledger, now_ms, limit=2, max_attempts=9):
            ledger.retry(job.id, job.version, run_at_ms=None, error="no", max_attempts=9, now_ms=now_ms + 1)
    assert ids(claim(ledger, 300, limit=2, max_attempts=2)) == ["own"]
    assert [job.id for job in ledger.jobs(JobQuery(states=["dead"])).jobs] == ["plain"]


# -- settling --


def test_a_claim_settles_a_thousand_those_that_passed_first_in_front(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob(f"job-{n:04}", "text", expires_at_ms=5_000 - n) for n in range(1_500)], now_ms=0)
    claim(ledger, 5_000)
    dead = {job.id for job in ledger.jobs(JobQuery(states=["dead"], limit=1_500)).jobs}
    assert dead == {f"job-{n:04}" for n in range(500, 1_500)}


def test_only_a_running_attempt_can_be_lost(ledger: SqliteLedger, look: Look) -> None:
    """A queued job that shows a start, as a copy may bring it, and has no attempt left is exhausted."""
    ledger.enqueue([NewJob("a", "text", stamps=Stamps(max_attempts=1))], now_ms=0)
    look("UPDATE fencepost_jobs SET started_at_ms = 1, attempts = 1")
    assert claim(ledger, 5) == []
    assert ledger.counts()["dead"] == 1


def test_a_promise_of_a_claim_is_one_transaction(ledger: SqliteLedger, look: Look) -> None:
    """What it has settled is undone with it."""
    ledger.enqueue([NewJob("late", "text", expires_at_ms=5), NewJob("a", "text")], now_ms=0)
    look(
        "CREATE TRIGGER injected BEFORE UPDATE OF state ON fencepost_jobs BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        claim(ledger, 5)
    assert ledger.counts()["queued"] == 2
    assert ledger.counts()["dead"] == 0


# -- settle and claim in one commit --


def test_a_settlement_and_the_next_claim_are_one_commit(ledger: SqliteLedger, commits: Commits) -> None:
    ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(20)], now_ms=0)
    claimed = claim(ledger, 0, limit=10)
    done = [
        Settlement(job.id, job.version, Receipt(job.id, text_sha256("text"), {"n": 1})) for job in claimed
    ]
    commits.any()
    before = ledger_version(commits)
    settled, next_ones = ledger.settle_and_claim(done, ClaimRequest("me", 100, 3, limit=10), now_ms=1)
    assert all(item.completed for item in settled)
    assert len(next_ones) == 10
    assert ledger_version(commits) == before + 1


def ledger_version(commits: Commits) -> int:
    return commits._version()


def test_a_refused_settlement_claims_nothing(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("a", "text"), NewJob("b", "text")], now_ms=0)
    (job,) = claim(ledger, 0)
    late = Settlement(job.id, job.version, Receipt(job.id, text_sha256("text"), {}))
    settled, claimed = ledger.settle_and_claim([late], ClaimRequest("me", 100, 3), now_ms=100)
    assert [item.completed for item in settled] == [False]
    assert claimed == []
    assert ledger.receipts(["a"]).keys() == {"a"}, "the receipt stays"
