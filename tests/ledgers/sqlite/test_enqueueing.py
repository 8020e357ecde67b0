"""Enqueue: the short way for new ids and the long way for others give the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    IdentityConflict,
    JobQuery,
    LedgerCorrupt,
    NewJob,
    Stamps,
)
from fencepost.core.ledgers.sqlite import SqliteLedger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Look = Callable[..., list[tuple[Any, ...]]]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"queue": "mail"},
    {"effect": "send", "priority": -(2**31)},
    {"priority": 2**31 - 1, "run_at_ms": 0},
    {"run_at_ms": 2**53 - 1, "expires_at_ms": 0},
    {"expires_at_ms": 2**53 - 1},
    {"stamps": Stamps(0.001, 1, 0.001, 0)},
    {"stamps": Stamps(max_attempts=3)},
    {"stamps": Stamps(dead_letter_retention_s=1e9)},
]


@pytest.mark.parametrize("count", [1, 7, 8, 49, 50, 51, 100, 101, 999, 10_000])
def test_requests_of_any_length_arrive_whole_and_in_order(ledger: SqliteLedger, count: int) -> None:
    jobs = [NewJob(f"job-{n}", f"text {n}") for n in range(count)]
    answers = ledger.enqueue(jobs, now_ms=7)
    assert [(answer.id, answer.created) for answer in answers] == [(job.id, True) for job in jobs]
    assert [job.id for job in ledger.jobs(JobQuery(limit=count)).jobs] == [job.id for job in jobs]
    assert {id: item.text for id, item in ledger.read_inputs(job.id for job in jobs).items()} == {
        job.id: job.text for job in jobs
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(OPTIONS) - 1), st.integers(1, 20)), min_size=1, max_size=6))
def test_alike_and_scattered_jobs_are_stored_alike(
    open_ledger: Callable[..., SqliteLedger], runs: list[tuple[int, int]]
) -> None:
    ledger = open_ledger(synchronous="OFF")
    start = sum(ledger.counts().values())
    chosen = [OPTIONS[which] for which, length in runs for _ in range(length)]
    jobs = [NewJob(f"job-{start + n}", "text", **options) for n, options in enumerate(chosen)]
    ledger.enqueue(jobs, now_ms=7)
    page = ledger.jobs(JobQuery(limit=10_000)).jobs[start:]
    assert page == [job.queued(enqueued_at_ms=7) for job in jobs]


def test_a_request_of_known_and_new_ids_adds_the_new_ones_at_the_end(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("b", "text"), NewJob("d", "text")], now_ms=1)
    ledger.cancel("d")
    answers = ledger.enqueue([NewJob(id, "text", priority=9) for id in "abcde"], now_ms=2)
    assert [answer.created for answer in answers] == [True, False, True, False, True]
    jobs = ledger.jobs().jobs
    assert [(job.id, job.priority, job.enqueued_at_ms) for job in jobs] == [
        ("b", 0, 1),
        ("d", 0, 1),
        ("a", 9, 2),
        ("c", 9, 2),
        ("e", 9, 2),
    ]


def test_a_place_in_the_order_outlives_death_and_redrive(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob(id, "text") for id in "abc"], now_ms=0)
    for id in "cab":
        ledger.cancel(id, now_ms=1)
    ledger.enqueue([NewJob("d", "text")], now_ms=0)
    assert [job.id for job in ledger.jobs().jobs] == list("abcd")
    for id in "bca":
        ledger.redrive(id, now_ms=2)
    assert [job.id for job in ledger.jobs().jobs] == list("abcd")
    claimed = ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1, limit=4), now_ms=2)
    assert [job.id for job in claimed] == list("abcd")


@pytest.mark.parametrize("where", ["live", "dead", "purged"])
def test_a_job_whose_input_is_missing_is_corrupt_also_among_new_ones(
    ledger: SqliteLedger, look: Look, where: str
) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    if where != "live":
        ledger.cancel("a", now_ms=1)
    if where == "purged":
        ledger.purge("a", now_ms=2)
    look("DROP TRIGGER fencepost_inputs_are_kept")
    look("DELETE FROM fencepost_inputs")
    for request in ([NewJob("a", "text")], [NewJob(id, "text") for id in "xyza"]):
        with pytest.raises(LedgerCorrupt, match=r"'a'.*missing"):
            ledger.enqueue(request, now_ms=3)
    assert look("SELECT count(*) FROM fencepost_inputs") == [(0,)]


def test_a_conflict_names_the_record_and_stores_nothing(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("c", "text")], now_ms=0)
    with pytest.raises(IdentityConflict, match=r"record 3 \(id 'c'\).*another text"):
        ledger.enqueue([NewJob("a", "text"), NewJob("b", "text"), NewJob("c", "changed")], now_ms=0)
    with pytest.raises(IdentityConflict, match=r"record 2 \(id 'c'\).*effect 'count', not 'send'"):
        ledger.enqueue([NewJob("a", "text"), NewJob("c", "text", effect="send")], now_ms=0)
    assert sum(ledger.counts().values()) == 1


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE fencepost_inputs SET text = 'changed'", "inputs are immutable"),
        ("DELETE FROM fencepost_inputs", "inputs are immutable"),
        ("UPDATE fencepost_effects SET receipt = '{}'", "receipts are immutable"),
        ("DELETE FROM fencepost_effects", "receipts are immutable"),
        ("UPDATE fencepost_audit SET actor = 'nobody'", "the audit is immutable"),
        ("DELETE FROM fencepost_audit", "the audit is immutable"),
        ("UPDATE fencepost_jobs SET state = 'lost'", "CHECK"),
        ("UPDATE fencepost_jobs SET state = 'dead'", "CHECK"),
        ("UPDATE fencepost_jobs SET version = -1", "CHECK"),
        ("UPDATE fencepost_jobs SET attempts = 'many'", "cannot store TEXT"),
        ("UPDATE fencepost_jobs SET lease_until_ms = 5", "CHECK"),
        ("UPDATE fencepost_jobs SET run_at_ms = -1", "CHECK"),
        ("UPDATE fencepost_jobs SET max_attempts = 0", "CHECK"),
        ("UPDATE fencepost_jobs SET priority = 2147483648", "CHECK"),
        ("UPDATE fencepost_jobs SET waiting = 2", "CHECK"),
        ("INSERT INTO fencepost_jobs (id) VALUES ('b')", "NOT NULL"),
        ("INSERT INTO fencepost_meta VALUES (2, 1, NULL, NULL)", "CHECK"),
    ],
)
def test_the_schema_keeps_nonsense_out(
    ledger: SqliteLedger, look: Look, statement: str, message: str
) -> None:
    ledger.enqueue([NewJob("a", "text"), NewJob("b", "text")], now_ms=0)
    ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1), now_ms=0)
    ledger.complete("a", 1, now_ms=0)
    ledger.cancel("b", now_ms=0)
    from fencepost.core import Receipt

    ledger.publish(Receipt("a", "0", {}))
    with pytest.raises(Exception, match=message):
        look(statement)
