"""An error midway through a move leaves the job whole in one place, comes out typed, and spoils no connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from fencepost.core import (
    Ledger,
    LedgerFailed,
    LedgerReplaced,
    NewJob,
    Receipt,
    Settlement,
    Stamps,
)
from fencepost.core.model.job import ClaimRequest

Sql = Callable[..., list[tuple[Any, ...]]]
Site = Callable[[Ledger], object]

LEASE_MS = 100


def claim(ledger: Ledger, now_ms: int) -> int:
    (job,) = ledger.claim(ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1), now_ms=now_ms)
    return job.version


# -- every site that moves a job to the dead --


def exhausted_in_a_claim(ledger: Ledger) -> None:
    claim(ledger, 0)
    ledger.claim(ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1), now_ms=LEASE_MS)


def used_up_by_a_stricter_worker(ledger: Ledger) -> None:
    version = claim(ledger, 0)
    ledger.retry("a", version, run_at_ms=None, error="no", max_attempts=2, now_ms=1)
    ledger.claim(ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1), now_ms=2)


def expired_in_a_claim(ledger: Ledger) -> None:
    ledger.claim(ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1), now_ms=1_000)


def expired_in_a_turn(ledger: Ledger) -> None:
    """A settlement goes along with the claim that buries; ``b`` is the one that is settled."""
    ledger.enqueue([NewJob("b", "text", priority=1)], now_ms=0)
    (job,) = ledger.claim(ClaimRequest(claimant="me", lease_ms=5_000, max_attempts=1), now_ms=0)
    request = ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1)
    settlement = Settlement("b", job.version, Receipt("b", "0" * 64, {"n": 1}))
    ledger.settle_and_claim([settlement], request, now_ms=1_000)


def last_retry(ledger: Ledger) -> None:
    version = claim(ledger, 0)
    ledger.retry("a", version, run_at_ms=None, error="no", max_attempts=1, now_ms=1)


def fail(ledger: Ledger) -> None:
    version = claim(ledger, 0)
    ledger.fail("a", version, error="no", now_ms=1)


def cancel_queued(ledger: Ledger) -> None:
    ledger.cancel("a", now_ms=1)


def cancel_running(ledger: Ledger) -> None:
    claim(ledger, 0)
    ledger.cancel("a", now_ms=1)


def resolve_as_failed(ledger: Ledger) -> None:
    version = claim(ledger, 0)
    ledger.hold("a", version, error="who knows", now_ms=1)
    ledger.resolve("a", decision="fail", now_ms=2)


def sweep_queued(ledger: Ledger) -> None:
    ledger.sweep_expired(now_ms=1_000)


def sweep_running(ledger: Ledger) -> None:
    claim(ledger, 999)
    ledger.sweep_expired(now_ms=1_000)


SITES: list[Site] = [
    exhausted_in_a_claim,
    used_up_by_a_stricter_worker,
    expired_in_a_claim,
    expired_in_a_turn,
    last_retry,
    fail,
    cancel_queued,
    cancel_running,
    resolve_as_failed,
    sweep_queued,
    sweep_running,
]

FAULTS = {
    "the insert fails": "BEFORE INSERT ON fencepost_dead",
    "the insert fails when it is done": "AFTER INSERT ON fencepost_dead",
    "the delete fails": "BEFORE DELETE ON fencepost_jobs",
    "the delete fails when it is done": "AFTER DELETE ON fencepost_jobs",
}


def inject(sql: Sql, fault: str, row: str = "") -> None:
    """Raise an error at that point: of every row, or of the row of that id."""
    which = f"WHEN ({'NEW' if 'INSERT' in fault else 'OLD'}.id = '{row}')" if row else ""
    sql(
        "CREATE FUNCTION injected() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'injected'; END $$"
    )
    sql(f"CREATE TRIGGER injected {fault} FOR EACH ROW {which} EXECUTE FUNCTION injected()")


def mend(sql: Sql) -> None:
    sql("DROP FUNCTION injected() CASCADE")


def places(sql: Sql) -> list[tuple[Any, ...]]:
    """In which tables ``a`` is."""
    return sql(
        "SELECT 'jobs' FROM fencepost_jobs WHERE id = 'a' UNION ALL SELECT 'dead' FROM fencepost_dead WHERE id = 'a'"
    )


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("site", SITES, ids=lambda site: site.__name__)
def test_an_error_midway_leaves_the_job_whole_in_one_place(
    ledger: Ledger, sql: Sql, site: Site, fault: str
) -> None:
    ledger.enqueue([NewJob("a", "text", expires_at_ms=1_000)], now_ms=0)
    inject(sql, fault)
    try:
        with pytest.raises(LedgerFailed, match=r"injected.*nothing was moved") as caught:
            site(ledger)
    finally:
        mend(sql)
    assert isinstance(caught.value.__cause__, psycopg.errors.RaiseException)
    assert places(sql) == [("jobs",)]
    assert ledger.audit() == [], "an action that failed is not recorded"

    # Whole, too: once the fault is gone, the move succeeds.
    before = ledger.get_job("a")
    assert before is not None
    assert ledger.cancel("a", now_ms=1) if before.state != "held" else ledger.resolve("a", decision="fail")
    dead = ledger.get_job("a")
    assert dead is not None
    assert (dead.state, dead.version, dead.attempts) == ("dead", before.version + 1, before.attempts)
    assert places(sql) == [("dead",)]


def test_a_settlement_is_not_lost_silently_with_the_claim_that_failed_beside_it(
    ledger: Ledger, sql: Sql
) -> None:
    """One commit for both: where burying fails, receipt and completion are not there either, and can be sent again."""
    ledger.enqueue([NewJob("a", "text", expires_at_ms=1_000)], now_ms=0)
    inject(sql, FAULTS["the insert fails"])
    try:
        with pytest.raises(LedgerFailed, match="injected"):
            expired_in_a_turn(ledger)
    finally:
        mend(sql)
    assert ledger.receipts(["b"]) == {}
    job = ledger.get_job("b")
    assert job is not None
    assert job.state == "running"
    settlement = Settlement("b", job.version, Receipt("b", "0" * 64, {"n": 1}))
    assert ledger.settle([settlement], now_ms=1_000)[0].completed


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("by", ["sweep", "claim"])
def test_an_error_in_a_batch_leaves_every_job_of_it(ledger: Ledger, sql: Sql, by: str, fault: str) -> None:
    """The third of five is the one that fails."""
    ledger.enqueue([NewJob(f"job-{n}", "text", expires_at_ms=1) for n in range(5)], now_ms=0)
    inject(sql, fault, row="job-2")
    try:
        with pytest.raises(LedgerFailed, match="moving 5 jobs to the dead failed"):
            _ = (
                ledger.sweep_expired(now_ms=1)
                if by == "sweep"
                else ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1), now_ms=1)
            )
    finally:
        mend(sql)
    assert ledger.counts() == {"queued": 5, "running": 0, "completed": 0, "dead": 0, "held": 0}
    assert ledger.sweep_expired(now_ms=1).expired == 5


@pytest.mark.parametrize("fault", ["BEFORE INSERT ON fencepost_jobs", "AFTER DELETE ON fencepost_dead"])
def test_an_error_in_a_redrive_leaves_the_job_dead(ledger: Ledger, sql: Sql, fault: str) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    cancel_queued(ledger)
    dead = ledger.get_job("a")
    inject(sql, fault)
    try:
        with pytest.raises(LedgerFailed, match=r"injected.*dead as before"):
            ledger.redrive("a", now_ms=2)
    finally:
        mend(sql)
    assert ledger.get_job("a") == dead
    assert [entry.action for entry in ledger.audit()] == ["cancel"]
    assert ledger.redrive("a", now_ms=3)
    assert places(sql) == [("jobs",)]


@pytest.mark.parametrize("fault", ["AFTER DELETE ON fencepost_dead", "BEFORE INSERT ON fencepost_purged"])
@pytest.mark.parametrize("by", ["operator", "sweep"])
def test_an_error_in_a_purge_keeps_the_dead_job(ledger: Ledger, sql: Sql, by: str, fault: str) -> None:
    ledger.enqueue([NewJob("a", "text", stamps=Stamps(dead_letter_retention_s=0))], now_ms=0)
    cancel_queued(ledger)
    inject(sql, fault)
    try:
        with pytest.raises(LedgerFailed, match=r"injected.*nothing was purged"):
            _ = ledger.purge("a", now_ms=2) if by == "operator" else ledger.sweep_expired(now_ms=2)
    finally:
        mend(sql)
    assert ledger.counts()["dead"] == 1
    assert sql("SELECT FROM fencepost_purged") == []
    assert ledger.purge("a", now_ms=3)


def test_an_error_in_an_enqueue_that_joined_leaves_the_callers_transaction_usable(
    ledger: Ledger, sql: Sql, store: Any
) -> None:
    inject(sql, "BEFORE INSERT ON fencepost_jobs", row="b")
    try:
        with store.connect() as connection:
            ledger.enqueue([NewJob("a", "text")], connection=connection)
            with pytest.raises(LedgerFailed, match="injected"):
                ledger.enqueue([NewJob("b", "text")], connection=connection)
            ledger.enqueue([NewJob("c", "text")], connection=connection)
    finally:
        mend(sql)
    assert [job.id for job in ledger.jobs().jobs] == ["a", "c"]
    assert ledger.read_inputs(["b"]) == {}


def test_another_ledger_in_the_place_of_this_one_takes_no_work_of_its_claims(
    ledger: Ledger, sql: Sql
) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    version = claim(ledger, 0)
    sql(
        "UPDATE fencepost_meta SET identity = gen_random_uuid()"
    )  # as a schema that was dropped and made anew has
    verbs: list[Callable[[], object]] = [
        lambda: ledger.complete("a", version, now_ms=1),
        lambda: claim(ledger, LEASE_MS),
        lambda: ledger.enqueue([NewJob("b", "text")], now_ms=1),
    ]
    for verb in verbs:
        with pytest.raises(LedgerReplaced, match="open it anew"):
            verb()
    assert sql("SELECT id, state FROM fencepost_jobs") == [("a", "running")]
