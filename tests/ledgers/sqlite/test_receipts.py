"""Receipts as they are stored, and the settlement of batches: the short way and the long way agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    InvalidInput,
    Job,
    LedgerCorrupt,
    NewJob,
    Receipt,
    ReceiptConflict,
    Settled,
    Settlement,
)
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.model.inputs import text_sha256

Look = Callable[..., list[tuple[Any, ...]]]
DIGEST = text_sha256("text")


def claimed(ledger: SqliteLedger, count: int) -> list[Job]:
    ledger.enqueue([NewJob(f"job-{n:03}", "text") for n in range(count)], now_ms=0)
    return ledger.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3, limit=count), now_ms=0)


def settlement(job: Job, **outcome: Any) -> Settlement:
    return Settlement(job.id, job.version, Receipt(job.id, DIGEST, outcome or {"n": 1}))


ODD: list[dict[str, Any]] = [
    {},
    {"z": 1, "a": 2},
    {"text": 'quotes " and \\ and / and \0 and \n and \u2028 and 𝔘'},
    {"numbers": [0, -1, 1.0, 1e300, 5e-324, 2**63, -(2**70), 0.1]},
    {"nested": {"list": [[[]], {}], "null": None, "true": True, "false": False}},
    {"": "empty key", "$.id": "a path", "id.x": 1, "key": "value"},
]


@pytest.mark.parametrize("count", [1, 7, 8, 100])
@pytest.mark.parametrize("outcome", ODD, ids=lambda outcome: next(iter(outcome), "empty"))
def test_a_receipt_comes_back_as_it_went_in_order_of_keys_and_all(
    ledger: SqliteLedger, look: Look, outcome: dict[str, Any], count: int
) -> None:
    jobs = claimed(ledger, count)
    assert all(
        item.completed for item in ledger.settle([settlement(job, **outcome) for job in jobs], now_ms=1)
    )
    for job in jobs:
        stored = ledger.receipts([job.id])[job.id]
        assert json.dumps(stored.outcome) == json.dumps(outcome or {"n": 1})
    one_way = look("SELECT receipt FROM fencepost_effects WHERE id = ?", (jobs[0].id,))
    ledger.publish(Receipt("job-999", DIGEST, outcome or {"n": 1}))
    (other_way,) = look("SELECT receipt FROM fencepost_effects WHERE id = 'job-999'")
    assert one_way[0][0] == other_way[0].replace("job-999", jobs[0].id), "both statements store the same text"


@pytest.mark.parametrize("count", [3, 30])
def test_each_item_of_a_batch_stands_for_itself(ledger: SqliteLedger, count: int) -> None:
    jobs = claimed(ledger, count)
    ledger.publish(Receipt(jobs[0].id, DIGEST, {"n": 1}))
    ledger.publish(Receipt(jobs[1].id, DIGEST, {"n": 2}))
    batch = [settlement(job) for job in jobs]
    batch.append(Settlement("unknown", 1, Receipt("unknown", DIGEST, {"n": 1})))
    batch.append(batch[2])
    stale = jobs[2]
    batch.append(Settlement(stale.id, stale.version + 1, Receipt(stale.id, DIGEST, {"n": 1})))
    answers = ledger.settle(batch, now_ms=1)
    assert answers[0] == Settled(jobs[0].id, 1, completed=True, reused=True, conflict=False)
    assert answers[1] == Settled(jobs[1].id, 1, completed=False, reused=False, conflict=True)
    assert set(answers[2:count]) == {Settled(job.id, 1, True, False, False) for job in jobs[2:]}
    assert answers[count] == Settled("unknown", 1, completed=False, reused=False, conflict=False)
    assert answers[count + 1] == Settled(jobs[2].id, 1, completed=False, reused=True, conflict=False)
    assert answers[count + 2] == Settled(jobs[2].id, 2, completed=False, reused=True, conflict=False)
    assert ledger.receipts(["unknown"]).keys() == {"unknown"}
    assert ledger.counts()["completed"] == count - 1


@pytest.mark.parametrize("count", [1, 50])
def test_the_receipts_of_a_batch_that_came_too_late_are_kept(ledger: SqliteLedger, count: int) -> None:
    jobs = claimed(ledger, count)
    answers = ledger.settle([settlement(job) for job in jobs], now_ms=100)
    assert [item.completed for item in answers] == [False] * count
    assert len(ledger.receipts([job.id for job in jobs])) == count


@pytest.mark.parametrize("count", [1, 50])
def test_a_batch_of_an_older_claim_completes_nothing(ledger: SqliteLedger, count: int) -> None:
    """All receipts are new and all leases live; only the fences tell that another claim holds the jobs."""
    stale = claimed(ledger, count)
    held = ledger.claim(ClaimRequest(claimant="other", lease_ms=100, max_attempts=3, limit=count), now_ms=100)
    assert len(held) == count
    answers = ledger.settle([settlement(job) for job in stale], now_ms=101)
    assert [item.completed for item in answers] == [False] * count
    assert ledger.counts()["running"] == count


def test_equal_by_value_is_the_same_receipt_whatever_the_order_of_its_keys(ledger: SqliteLedger) -> None:
    ledger.publish(Receipt("a", DIGEST, {"x": 1, "y": {"a": 1, "b": 2}}))
    assert ledger.publish(Receipt("a", DIGEST, {"y": {"b": 2, "a": 1}, "x": 1})).reused
    for other in ({"x": 1.0, "y": {"a": 1, "b": 2}}, {"x": True, "y": {"a": 1, "b": 2}}, {"x": 1}):
        with pytest.raises(ReceiptConflict):
            ledger.publish(Receipt("a", DIGEST, other))


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("outcome", [{"n": float("nan")}, {"n": object()}, {"n": "\ud800"}])
def test_a_receipt_that_is_no_json_is_refused_and_nothing_is_stored(
    ledger: SqliteLedger, outcome: dict[str, Any], count: int
) -> None:
    jobs = claimed(ledger, count)
    with pytest.raises(InvalidInput):
        ledger.settle([settlement(job, **outcome) for job in jobs], now_ms=1)
    with pytest.raises(InvalidInput):
        ledger.publish(Receipt(jobs[0].id, DIGEST, outcome))
    assert ledger.receipts([job.id for job in jobs]) == {}
    assert ledger.counts()["running"] == count


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"id": "a"}', '{"id": 1, "input_sha256": "x"}', '{"id":"a","id":"a"}']
)
def test_a_stored_receipt_that_cannot_be_read_is_corrupt_and_stays(
    ledger: SqliteLedger, look: Look, text: str
) -> None:
    ledger.counts()
    look("INSERT INTO fencepost_effects VALUES ('a', ?)", (text,))
    with pytest.raises(LedgerCorrupt, match="receipt of 'a'"):
        ledger.receipts(["a"])
    with pytest.raises(LedgerCorrupt):
        ledger.publish(Receipt("a", DIGEST, {}))
    assert look("SELECT receipt FROM fencepost_effects") == [(text,)]


def test_receipts_and_inputs_of_names_that_cannot_be_ids_are_not_there(ledger: SqliteLedger) -> None:
    names = ["", "Not", "a\n", "x" * 65, '"],["', "a'--"]
    assert ledger.receipts(names) == {}
    assert ledger.read_inputs(names) == {}
    assert ledger.get_job("Not") is None
