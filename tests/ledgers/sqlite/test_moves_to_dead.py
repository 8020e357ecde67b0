"""The move to the dead is whole or nothing at every site that makes it; the engine's error comes out typed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from fencepost.core import ClaimRequest, LedgerFailed, NewJob, Stamps
from fencepost.core.ledgers.sqlite import SqliteLedger

Look = Callable[..., list[tuple[Any, ...]]]
Site = Callable[[SqliteLedger], object]

LEASE_MS = 100


def claim(ledger: SqliteLedger, now_ms: int, max_attempts: int = 1) -> int:
    (job,) = ledger.claim(
        ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=max_attempts), now_ms=now_ms
    )
    return job.version


def exhausted_in_a_claim(ledger: SqliteLedger) -> None:
    claim(ledger, 0)
    ledger.claim(ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1), now_ms=LEASE_MS)


def expired_in_a_claim(ledger: SqliteLedger) -> None:
    ledger.claim(ClaimRequest(claimant="me", lease_ms=LEASE_MS, max_attempts=1), now_ms=1_000)


def last_retry(ledger: SqliteLedger) -> None:
    version = claim(ledger, 0)
    ledger.retry("a", version, run_at_ms=None, error="no", max_attempts=1, now_ms=1)


def fail(ledger: SqliteLedger) -> None:
    version = claim(ledger, 0)
    ledger.fail("a", version, error="no", now_ms=1)


def cancel_queued(ledger: SqliteLedger) -> None:
    ledger.cancel("a", now_ms=1)


def cancel_running(ledger: SqliteLedger) -> None:
    claim(ledger, 0)
    ledger.cancel("a", now_ms=1)


def resolve_as_failed(ledger: SqliteLedger) -> None:
    version = claim(ledger, 0)
    ledger.hold("a", version, error="who knows", now_ms=1)
    ledger.resolve("a", decision="fail", now_ms=2)


def sweep_queued(ledger: SqliteLedger) -> None:
    ledger.sweep_expired(now_ms=1_000)


def sweep_running(ledger: SqliteLedger) -> None:
    claim(ledger, 999)
    ledger.sweep_expired(now_ms=1_000)


SITES: list[Site] = [
    exhausted_in_a_claim,
    expired_in_a_claim,
    last_retry,
    fail,
    cancel_queued,
    cancel_running,
    resolve_as_failed,
    sweep_queued,
    sweep_running,
]

FAULTS = {
    "the insert aborts": "BEFORE INSERT ON fencepost_dead BEGIN SELECT raise(ABORT, 'injected'); END",
    "the delete aborts": "BEFORE DELETE ON fencepost_jobs BEGIN SELECT raise(ABORT, 'injected'); END",
    "the insert fails": "AFTER INSERT ON fencepost_dead BEGIN SELECT raise(FAIL, 'injected'); END",
    "the insert ends the transaction": (
        "BEFORE INSERT ON fencepost_dead BEGIN SELECT raise(ROLLBACK, 'injected'); END"
    ),
    "the delete ends the transaction": (
        "BEFORE DELETE ON fencepost_jobs BEGIN SELECT raise(ROLLBACK, 'injected'); END"
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("site", SITES, ids=lambda site: site.__name__)
def test_an_error_midway_leaves_the_job_whole_in_one_place(
    ledger: SqliteLedger, look: Look, site: Site, fault: str
) -> None:
    ledger.enqueue([NewJob("a", "text", expires_at_ms=1_000)], now_ms=0)
    look(f"CREATE TRIGGER injected {fault}")
    with pytest.raises(LedgerFailed, match=r"injected.*nothing was moved") as caught:
        site(ledger)
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    assert "injected" in str(caught.value.__cause__)
    assert look("SELECT count(*) FROM fencepost_jobs") == [(1,)]
    assert look("SELECT count(*) FROM fencepost_dead") == [(0,)]

    # Whole, too: once the fault is gone, the same move succeeds.
    look("DROP TRIGGER injected")
    before = ledger.get_job("a")
    assert before is not None
    assert ledger.cancel("a", now_ms=1) if before.state != "held" else ledger.resolve("a", decision="fail")
    dead = ledger.get_job("a")
    assert dead is not None
    assert (dead.state, dead.version, dead.attempts) == ("dead", before.version + 1, before.attempts)
    assert look("SELECT count(*) FROM fencepost_jobs") == [(0,)]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_error_in_a_batch_leaves_every_job_of_it(ledger: SqliteLedger, look: Look, fault: str) -> None:
    """The third of five is the one that fails."""
    ledger.enqueue([NewJob(f"job-{n}", "text", expires_at_ms=1) for n in range(5)], now_ms=0)
    row = "NEW" if "INSERT" in fault else "OLD"
    look(
        f"CREATE TRIGGER injected {fault.replace(' BEGIN', f' WHEN {row}.id = {chr(39)}job-2{chr(39)} BEGIN')}"
    )
    with pytest.raises(LedgerFailed, match="injected"):
        ledger.sweep_expired(now_ms=1)
    assert ledger.counts() == {"queued": 5, "running": 0, "completed": 0, "dead": 0, "held": 0}


@pytest.mark.parametrize(
    "fault",
    [
        "BEFORE INSERT ON fencepost_jobs BEGIN SELECT raise(ABORT, 'injected'); END",
        "BEFORE DELETE ON fencepost_dead BEGIN SELECT raise(ABORT, 'injected'); END",
        "BEFORE DELETE ON fencepost_dead BEGIN SELECT raise(ROLLBACK, 'injected'); END",
    ],
)
def test_an_error_in_a_redrive_leaves_the_job_dead(ledger: SqliteLedger, look: Look, fault: str) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    cancel_queued(ledger)
    dead = ledger.get_job("a")
    look(f"CREATE TRIGGER injected {fault}")
    with pytest.raises(LedgerFailed, match=r"injected.*dead as before"):
        ledger.redrive("a", now_ms=2)
    assert ledger.get_job("a") == dead
    assert [entry.action for entry in ledger.audit()] == ["cancel"]
    look("DROP TRIGGER injected")
    assert ledger.redrive("a", now_ms=3)


@pytest.mark.parametrize("by", ["operator", "sweep"])
def test_an_error_in_a_purge_keeps_the_dead_job(ledger: SqliteLedger, look: Look, by: str) -> None:
    ledger.enqueue([NewJob("a", "text", stamps=Stamps(dead_letter_retention_s=0))], now_ms=0)
    cancel_queued(ledger)
    look("CREATE TRIGGER injected BEFORE DELETE ON fencepost_dead BEGIN SELECT raise(ABORT, 'injected'); END")
    with pytest.raises(LedgerFailed, match=r"injected.*nothing was purged"):
        _ = ledger.purge("a", now_ms=2) if by == "operator" else ledger.sweep_expired(now_ms=2)
    assert ledger.counts()["dead"] == 1
    assert look("SELECT count(*) FROM fencepost_purged") == [(0,)]


def test_the_original_error_comes_out_though_the_rollback_has_nothing_left_to_do(
    ledger: SqliteLedger, look: Look
) -> None:
    """A trigger that ends the transaction takes the savepoint along; releasing it must not hide the reason."""
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    look(
        "CREATE TRIGGER injected BEFORE INSERT ON fencepost_dead BEGIN SELECT raise(ROLLBACK, 'the reason'); END"
    )
    with pytest.raises(LedgerFailed, match="the reason") as caught:
        ledger.cancel("a", now_ms=1)
    assert "savepoint" not in str(caught.value)
    assert ledger.enqueue([NewJob("b", "text")], now_ms=0)[0].created
