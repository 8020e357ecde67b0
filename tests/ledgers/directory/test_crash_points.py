"""A process is killed between any two steps that change a directory store; nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.core import (
    ClaimRequest,
    NewJob,
    Receipt,
    Schedule,
    Settlement,
)
from fencepost.core.ledgers.directory import DirectoryLedger

from tests.programs import python

JOBS = ["jobs.json: temporary made", "jobs.json: temporary written", "jobs.json: temporary durable",
        "jobs.json: renamed", "jobs.json: durable"]  # fmt: skip
INPUTS = ["input: temporary made", "input: temporary written", "input: temporary durable", "input: linked",
          "input: temporary gone", "inputs: durable"]  # fmt: skip
RECEIPTS = ["receipt: temporary made", "receipt: temporary written", "receipt: temporary durable",
            "receipt: linked", "receipt: temporary gone", "receipt: durable"]  # fmt: skip
ONLY_ONCE = {"inputs: durable", "receipt: durable"}

DIE_IN = """
import sys
from fencepost.core import ClaimRequest, NewJob, Receipt, Settlement
from fencepost.core.ledgers.crash import kill_at
from fencepost.core.ledgers.directory import DirectoryLedger

verb, store, point, nth = sys.argv[1:]
with DirectoryLedger(store, step=kill_at(point, int(nth))) as ledger:
    if verb == "enqueue":
        ledger.enqueue([NewJob("a", "x"), NewJob("b", "y")])
    elif verb == "claim":
        ledger.claim(ClaimRequest(claimant="dies", lease_ms=10, max_attempts=3), now_ms=100)
    elif verb == "publish":
        ledger.publish(Receipt("a", "00", {"n": 1}))
    elif verb == "complete":
        ledger.complete("a", 1, now_ms=101)
    elif verb == "settle":
        request = ClaimRequest(claimant="dies", lease_ms=10, max_attempts=3)
        ledger.settle_and_claim([Settlement("a", 1, Receipt("a", "00", {"n": 1}))], request, now_ms=101)
    elif verb == "tick":
        ledger.tick(now_ms=60_000)
    elif verb == "cancel":
        ledger.cancel("a", actor="somebody", now_ms=101)
print("lived")
"""


def die_in(verb: str, store: Path, point: str, nth: int = 1) -> None:
    ended = python(DIE_IN, verb, store, point, str(nth))
    assert (ended.returncode, ended.stdout, ended.stderr) == (-9, b"", b"")


def finish(store: Path) -> None:
    """The next worker does what there is to do, each effect once."""
    request = ClaimRequest(claimant="next", lease_ms=10, max_attempts=3)
    with DirectoryLedger(store) as ledger:
        ledger.enqueue([NewJob("a", "x"), NewJob("b", "y")], now_ms=200)
        claimed = ledger.claim(
            ClaimRequest(claimant="next", lease_ms=10, max_attempts=3, limit=10), now_ms=200
        )
        settlements = [
            Settlement(
                job.id, job.version, ledger.receipts([job.id]).get(job.id, Receipt(job.id, "00", {"n": 1}))
            )
            for job in claimed
        ]
        settled, more = ledger.settle_and_claim(settlements, request, now_ms=201)
        assert all(item.completed for item in settled)
        assert more == []
        assert ledger.counts()["completed"] == 2
        assert ledger.receipts(["a", "b"]).keys() == {"a", "b"}
    assert sorted(path.name for path in (store / "inputs").glob("[!.]*")) == ["a.json", "b.json"]


@pytest.mark.parametrize(("point", "nth"), [(p, n) for p in INPUTS for n in (1, 2) if p not in ONLY_ONCE or n == 1]
                         + [(p, 1) for p in JOBS])  # fmt: skip
def test_a_crash_in_enqueue_stores_the_request_whole_or_is_mended_by_repeating_it(
    tmp_path: Path, point: str, nth: int
) -> None:
    store = tmp_path / "store"
    die_in("enqueue", store, point, nth)
    with DirectoryLedger(store) as ledger:
        assert [job.id for job in ledger.jobs().jobs] in ([], ["a", "b"])
    finish(store)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with DirectoryLedger(path) as ledger:
        ledger.enqueue([NewJob("a", "x"), NewJob("b", "y")], now_ms=100)
    return path


SCHEDULES = [point.replace("jobs.json", "schedules.json") for point in JOBS]


@pytest.mark.parametrize("point", [*INPUTS, *JOBS, *SCHEDULES])
@pytest.mark.parametrize("overlap", ["allow", "skip"])
def test_a_crash_in_a_tick_loses_no_boundary_and_fires_none_twice(
    tmp_path: Path, point: str, overlap: str
) -> None:
    store = tmp_path / "store"
    with DirectoryLedger(store) as ledger:
        ledger.register_schedule(Schedule("beat", "@every 1m", "tick", overlap=overlap), now_ms=0)
    die_in("tick", store, point)
    with DirectoryLedger(store) as ledger:
        ledger.tick(now_ms=60_000)
        assert [job.id for job in ledger.jobs().jobs] == ["beat-60000"]
        assert ledger.soonest() == 120_000
        assert [fire.unfinished for fire in ledger.tick(now_ms=120_000)] == [
            "beat-60000" if overlap == "skip" else None
        ]


@pytest.mark.parametrize("point", JOBS)
def test_a_crash_in_claim_leaves_the_job_queued_or_leased(store: Path, point: str) -> None:
    die_in("claim", store, point)
    with DirectoryLedger(store) as ledger:
        job = ledger.get_job("a")
    assert job is not None
    assert (job.state, job.version, job.attempts) in (("queued", 0, 0), ("running", 1, 1))
    finish(store)


SETTLE = [*RECEIPTS[:-1], *JOBS[:3], RECEIPTS[-1], *JOBS[3:]]
"""No job is completed by a receipt whose name is not durable."""


@pytest.mark.parametrize("point", SETTLE)
def test_a_crash_in_a_settlement_completes_the_job_with_its_receipt_or_not_at_all(
    store: Path, point: str
) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.claim(ClaimRequest(claimant="dies", lease_ms=10, max_attempts=3), now_ms=100)
    die_in("settle", store, point)
    with DirectoryLedger(store) as ledger:
        states = [job.state for job in ledger.jobs().jobs]
        assert states in (["running", "queued"], ["completed", "running"])
        if states[0] == "completed":
            assert ledger.receipts(["a"])["a"].outcome == {"n": 1}
    finish(store)


def test_the_names_of_receipts_are_durable_before_their_jobs_are_completed_and_before_a_verb_returns(
    store: Path,
) -> None:
    steps: list[str] = []
    with DirectoryLedger(store, step=steps.append) as ledger:
        ledger.claim(ClaimRequest(claimant="w", lease_ms=10, max_attempts=3), now_ms=100)
        steps.clear()
        receipt = Receipt("a", "00", {"n": 1})
        ledger.settle([Settlement("a", 1, receipt)], now_ms=101)
        assert steps == SETTLE
        steps.clear()
        late = Settlement("b", 1, Receipt("b", "00", {}))
        assert not ledger.settle([late], now_ms=101)[0].completed
        assert steps == RECEIPTS
        steps.clear()
        assert ledger.publish(receipt).reused
        assert steps[-1] == RECEIPTS[-1]


@pytest.mark.parametrize("point", RECEIPTS)
def test_a_crash_in_publish_leaves_the_receipt_whole_or_absent(store: Path, point: str) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.claim(ClaimRequest(claimant="dies", lease_ms=10, max_attempts=3), now_ms=100)
    die_in("publish", store, point)
    path = store / "effects" / "a.json"
    before = path.read_bytes() if path.exists() else None
    assert before is None or json.loads(before) == {"id": "a", "input_sha256": "00", "n": 1}
    finish(store)
    assert before in (None, path.read_bytes()), "a receipt that is there is never written again"


@pytest.mark.parametrize("point", JOBS)
def test_a_crash_in_complete_leaves_the_job_running_or_completed(store: Path, point: str) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.claim(ClaimRequest(claimant="dies", lease_ms=10, max_attempts=3), now_ms=100)
        ledger.publish(Receipt("a", "00", {"n": 1}))
    die_in("complete", store, point)
    with DirectoryLedger(store) as ledger:
        job = ledger.get_job("a")
    assert job is not None
    assert (job.state, job.version) in (("running", 1), ("completed", 1))
    finish(store)


@pytest.mark.parametrize("point", ["audit: durable", *JOBS])
def test_a_crash_in_a_manual_action_never_leaves_it_unrecorded(store: Path, point: str) -> None:
    die_in("cancel", store, point)
    with DirectoryLedger(store) as ledger:
        job = ledger.get_job("a")
        assert job is not None
        assert [entry.action for entry in ledger.audit()] == ["cancel"]
        if job.state == "dead":
            assert ledger.redrive("a", now_ms=102)
    finish(store)


def test_a_point_that_is_never_reached_kills_nobody(store: Path) -> None:
    ended = python(DIE_IN, "claim", str(store), "no such point", "1")
    assert (ended.returncode, ended.stdout) == (0, b"lived\n")
