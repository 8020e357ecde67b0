"""What a claim and the verbs beside it cost the SQL ledgers does not depend on the number of queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import ClaimRequest, Ledger, NewJob, Stamps
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.testing import Store

from tests.conftest import LEDGERS

JOBS = 2_000
TIMES = 1.3
"""Of the steps that one queue takes; the trees of the indexes are as deep, but hold longer names."""

VERBS: dict[str, Callable[[Ledger], object]] = {
    "claim": lambda ledger: claim(ledger),
    "claim of any effect": lambda ledger: claim(ledger, effects=None),
    "claim of one queue": lambda ledger: claim(ledger, queues=["queue-0"]),
    "next_due_ms": lambda ledger: ledger.next_due_ms(effects=["count"]),
    "next_due_ms of any effect": lambda ledger: ledger.next_due_ms(),
    "sweep_expired": lambda ledger: ledger.sweep_expired(now_ms=100),
    "tick": lambda ledger: ledger.tick(now_ms=100),
}


def claim(ledger: Ledger, **served: Any) -> list[str]:
    served = {"effects": ["count"]} | served
    request = ClaimRequest(claimant="me", lease_ms=1_000, max_attempts=3, limit=10, **served)
    return [job.id for job in ledger.claim(request, now_ms=100)]


def filled(path: Path, queues: int) -> SqliteLedger:
    """Queued, delayed, running, expiring and dead jobs, spread over so many queues."""
    ledger = SqliteLedger(path, synchronous="OFF")
    for kind, options in (
        ("running", {}),
        ("dead", {"expires_at_ms": 50}),
        ("ready", {}),
        ("delayed", {"run_at_ms": 9_000}),
        ("expiring", {"expires_at_ms": 9_000}),
    ):
        stamps = Stamps(dead_letter_retention_s=100)
        ledger.enqueue(
            [
                NewJob(f"{kind}-{n}", "x", queue=f"queue-{n % queues}", stamps=stamps, **options)
                for n in range(JOBS)
            ],
            now_ms=1,
        )
        if kind == "running":
            request = ClaimRequest(claimant="other", lease_ms=9_000, max_attempts=3, limit=JOBS)
            assert len(ledger.claim(request, now_ms=2)) == JOBS
        if kind == "dead":
            assert ledger.sweep_expired(now_ms=60).expired == JOBS
    return ledger


def steps(ledger: SqliteLedger, call: Callable[[Ledger], object]) -> int:
    """How many steps of its machine SQLite takes for the call."""
    with ledger._database.read() as transaction:
        connection = transaction.connection
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(count, 1)
    try:
        call(ledger)
    finally:
        connection.set_progress_handler(None, 0)
    return taken


@pytest.fixture(scope="module")
def one_and_many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteLedger, SqliteLedger]]:
    folder = tmp_path_factory.mktemp("queues")
    one, many = filled(folder / "one.db", 1), filled(folder / "many.db", JOBS)
    yield one, many
    one.close()
    many.close()


@pytest.mark.parametrize("verb", VERBS)
def test_it_takes_sqlite_as_many_steps_with_two_thousand_queues_as_with_one(
    one_and_many: tuple[SqliteLedger, SqliteLedger], verb: str
) -> None:
    one, many = (steps(ledger, VERBS[verb]) for ledger in one_and_many)
    assert 0 < many <= TIMES * one


def test_paused_jobs_ahead_cost_a_claim_nothing_once_they_were_passed_over(tmp_path: Path) -> None:
    taken = []
    for ahead in (0, 3_000):
        with SqliteLedger(tmp_path / f"{ahead}.db", synchronous="OFF") as ledger:
            if ahead:
                jobs = [NewJob(f"mail-{n}", "x", queue="mail", priority=9) for n in range(ahead)]
                ledger.enqueue(jobs, now_ms=1)
            ledger.enqueue([NewJob(f"job-{n}", "x") for n in range(100)], now_ms=1)
            ledger.pause("mail", now_ms=2)
            assert claim(ledger) == [f"job-{n}" for n in range(10)]
            taken.append((steps(ledger, claim), steps(ledger, VERBS["next_due_ms"])))
    (claim_without, due_without), (claim_with, due_with) = taken
    assert claim_with <= TIMES * claim_without
    assert due_with <= TIMES * due_without


def test_what_a_resume_did_not_return_because_its_process_ended_a_claim_returns(
    lined_store: Store,
) -> None:
    with lined_store.open() as ledger:
        ledger.enqueue([NewJob(f"mail-{n}", "x", queue="mail", priority=9) for n in range(3)], now_ms=1)
        ledger.enqueue([NewJob("job", "x")], now_ms=1)
        ledger.pause("mail", now_ms=2)
        assert claim(ledger) == ["job"]
        ledger._engine = Dying(ledger._engine)  # type: ignore[attr-defined]
        with pytest.raises(Ended):
            ledger.resume("mail", now_ms=3)
    with lined_store.open() as ledger:
        assert ledger.paused() == []
        assert ledger.next_due_ms() == ledger.next_due_ms(queues=["mail"]) == 0
        assert claim(ledger, queues=["other"]) == []
        assert claim(ledger) == ["mail-0", "mail-1", "mail-2"]
        assert ledger.pause("mail", now_ms=200)


def test_thousands_of_jobs_are_passed_over_and_come_back_in_order(lined_store: Store) -> None:
    with lined_store.open() as ledger:
        mail = [NewJob(f"mail-{n:04}", "x", queue="mail", priority=9) for n in range(2_500)]
        ledger.enqueue(mail, now_ms=1)
        ledger.enqueue([NewJob("late", "x", queue="mail", run_at_ms=90), NewJob("job", "x")], now_ms=1)
        ledger.pause("mail", now_ms=2)
        assert claim(ledger) == ["job"]
        assert claim(ledger) == []
        assert ledger.counts()["queued"] == 2_501
        assert ledger.resume("mail", now_ms=3)
        taken = [id for _ in range(251) for id in claim(ledger)]
        assert taken == [*(job.id for job in mail), "late"]


class Ended(BaseException):
    """The process ends here."""


class Dying:
    """An engine whose process ends when it is to return what was passed over."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        if name == "give_back":
            raise Ended
        return getattr(self._engine, name)


@pytest.fixture(params=["sqlite", "postgres"])
def lined_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of each SQL ledger."""
    fresh = LEDGERS[request.param].fresh
    make: Callable[[Path], Store] = request.getfixturevalue(fresh) if isinstance(fresh, str) else fresh
    return make(tmp_path / "ledger")
