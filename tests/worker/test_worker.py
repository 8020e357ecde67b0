"""A worker makes attempts: what each ends in, what it leaves in the ledger, and what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    Hold,
    Job,
    LeaseLost,
    Ledger,
    LedgerBusy,
    LedgerCorrupt,
    LedgerReplaced,
    NewJob,
    Receipt,
    ReceiptConflict,
    Reject,
    Retry,
    Stamps,
)
from fencepost.core.model.effect import (
    Applied,
    Effect,
    NotApplied,
    Unknown,
)
from fencepost.core.model.events import Event
from fencepost.core.model.inputs import text_sha256
from fencepost.core.model.keys import idempotency_key
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker

from tests.worker.doubles import Acting, Pure, raising

NOW = 1_000
DIGEST = text_sha256("x")


@pytest.fixture
def ledger(make_ledger: Callable[[], Ledger]) -> Ledger:
    return make_ledger()


def run(
    ledger: Ledger, *effects: Effect, max_jobs: int = 100, now_ms: int | None = NOW, **options: Any
) -> list[Event]:
    events: list[Event] = []
    chosen = WorkerOptions(claimant="w", max_jobs=max_jobs, now_ms=now_ms, **options)
    Worker(ledger, {effect.info.name: effect for effect in effects}, chosen, on_event=events.append).run()
    return events


def follow(ledger: Ledger, *effects: Effect, **options: Any) -> list[Event]:
    events: list[Event] = []
    chosen = WorkerOptions(claimant="w", idle_exit_s=0.0, now_ms=NOW, **options)
    Worker(ledger, {effect.info.name: effect for effect in effects}, chosen, on_event=events.append).run()
    return events


def add(ledger: Ledger, effect: str = "act", *, id: str = "a", **options: Any) -> None:
    ledger.enqueue([NewJob(id, "x", effect=effect, **options)], now_ms=NOW)


def job_of(ledger: Ledger, id: str = "a") -> Job:
    job = ledger.get_job(id)
    assert job is not None
    return job


# -- success --


def test_a_job_is_applied_once_and_its_receipt_says_what_was_done(ledger: Ledger) -> None:
    add(ledger)
    effect = Acting()
    assert run(ledger, effect) == [Event("a", 1, "completed")]
    assert ledger.receipts(["a"]) == {"a": Receipt("a", DIGEST, {"done": "a"}, "act", "1")}
    assert job_of(ledger).state == "completed"
    assert run(ledger, effect) == []
    assert len(effect.applied) == 1


def test_the_request_carries_fence_attempt_and_a_key_that_is_the_same_for_every_attempt(
    ledger: Ledger,
) -> None:
    add(ledger)
    effect = Acting(raising(Retry(after_s=0)))
    run(ledger, effect, max_jobs=2)
    first, second = effect.applied
    assert (first.id, first.text, first.input_sha256) == ("a", "x", DIGEST)
    assert [(request.attempt, request.fence) for request in effect.applied] == [(1, 1), (2, 3)]
    assert first.idempotency_key == second.idempotency_key == idempotency_key("tests", "act", "a", DIGEST)


def test_a_bounded_worker_makes_at_most_so_many_attempts(ledger: Ledger) -> None:
    for n in range(5):
        add(ledger, id=f"j{n}")
    assert [event.id for event in run(ledger, Acting(), max_jobs=3)] == ["j0", "j1", "j2"]
    assert ledger.counts()["queued"] == 2
    assert job_of(ledger, "j3").version == 0, "what is not attempted is not touched"


def test_failed_attempts_count_against_the_bound(ledger: Ledger) -> None:
    add(ledger)
    effect = Acting(raising(Retry(after_s=0)))
    assert len(run(ledger, effect, max_jobs=2, max_attempts=10)) == 2
    assert job_of(ledger).attempts == 2


def test_a_worker_claims_only_effects_that_it_has_loaded(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    add(ledger, "other", id="b", priority=9)
    add(ledger)
    assert [event.id for event in run(ledger, Acting())] == ["a"]
    assert job_of(ledger, "b").version == 0
    assert [record.getMessage() for record in caplog.records] == [
        "jobs stay queued whose effects this worker has not loaded: other"
    ]


def test_several_queues_take_turns_so_that_none_starves(ledger: Ledger) -> None:
    for n in range(6):
        add(ledger, id=f"full{n}", queue="full")
    for n in range(2):
        add(ledger, id=f"rare{n}", queue="rare")
    add(ledger, id="unserved")
    order = [event.id for event in run(ledger, Acting(), queues=("full", "rare"))]
    assert order[:4] == ["full0", "rare0", "full1", "rare1"]
    assert len(order) == 8
    assert job_of(ledger, "unserved").state == "queued"


def test_many_slots_make_attempts_at_once(ledger: Ledger) -> None:
    for n in range(4):
        add(ledger, id=f"j{n}")
    meeting = threading.Barrier(4, timeout=30)
    events = run(ledger, Acting(lambda request: {"n": meeting.wait() * 0}), concurrency=4)
    assert sorted(event.id for event in events) == ["j0", "j1", "j2", "j3"]
    assert {event.state for event in events} == {"completed"}


# -- receipts that are there --


def test_a_receipt_that_is_there_is_reused_and_nothing_is_applied(ledger: Ledger) -> None:
    add(ledger)
    ledger.publish(Receipt("a", DIGEST, {"done": "before"}, "act", "0"))
    effect = Acting()
    assert run(ledger, effect) == [Event("a", 1, "completed", reused_effect=True)]
    assert effect.applied == []


@pytest.mark.parametrize(
    "receipt",
    [
        Receipt("a", "0" * 64, {"length": 1}, "measure", "1"),
        Receipt("a", DIGEST, {"length": 1}, "other", "1"),
        Receipt("a", DIGEST, {"length": 2}, "measure", "1"),
        Receipt("a", DIGEST, {"length": 1.0}, "measure", "1"),
        Receipt("a", DIGEST, {"length": True}, "measure", "1"),
        Receipt("a", DIGEST, {"length": 1, "more": None}, "measure", "1"),
    ],
    ids=["digest", "effect", "value", "float", "boolean", "a key more"],
)
def test_a_receipt_that_contradicts_is_a_broken_promise(ledger: Ledger, receipt: Receipt) -> None:
    add(ledger, "measure")
    ledger.publish(receipt)
    with pytest.raises(ReceiptConflict, match="'a'"):
        run(ledger, Pure())
    assert (job_of(ledger).state, job_of(ledger).version) == ("running", 1), "left as it is"
    assert ledger.receipts(["a"])["a"].same_as(receipt)


def test_a_following_worker_holds_a_broken_promise_and_goes_on(ledger: Ledger) -> None:
    add(ledger, "measure")
    ledger.publish(Receipt("a", "0" * 64, {"length": 1}, "measure", "1"))
    add(ledger, "measure", id="b")
    events = {event.id: event.state for event in follow(ledger, Pure())}
    assert events == {"a": "held", "b": "completed"}
    assert "ReceiptConflict" in (job_of(ledger).last_error or "")


def test_the_outcome_of_another_version_of_a_pure_effect_stands(ledger: Ledger) -> None:
    add(ledger, "measure")
    ledger.publish(Receipt("a", DIGEST, {"length": 99}, "measure", "0"))
    assert run(ledger, Pure(version="1")) == [Event("a", 1, "completed", reused_effect=True)]


def test_the_loser_of_a_race_adopts_the_first_receipt_of_an_acting_effect(ledger: Ledger) -> None:
    add(ledger)

    def beaten(request: Any) -> dict[str, str]:
        ledger.publish(Receipt("a", DIGEST, {"by": "another"}, "act", "1"))
        return {"by": "me"}

    assert run(ledger, Acting(beaten)) == [Event("a", 1, "completed", reused_effect=True)]
    assert ledger.receipts(["a"])["a"].outcome == {"by": "another"}


# -- failures --


def test_an_exception_is_retried_after_a_backoff_until_the_limit_and_then_dead(ledger: Ledger) -> None:
    add(ledger, stamps=Stamps(backoff_base_s=0.001, max_attempts=3))
    effect = Acting(raising(ValueError("no\0good")))
    states = []
    for _ in range(4):
        states += [
            (event.version, event.state) for event in run(ledger, effect, now_ms=NOW + 10_000 * len(states))
        ]
    assert states == [(1, "queued"), (3, "queued"), (5, "dead")]
    error = job_of(ledger).last_error or ""
    assert error.startswith("ValueError: no\\x00good\n\nTraceback (innermost first):\n  File ")
    assert "doubles.py" in error


@pytest.mark.parametrize(
    ("signal", "state", "error"),
    [
        (Retry("later", after_s=1.5), "queued", "later"),
        (Reject("never"), "dead", "never"),
        (Hold("look"), "held", "look"),
        (LeaseLost("the receiver knows a newer fence"), None, None),
        (SystemExit(3), "queued", "SystemExit: 3"),
    ],
    ids=["retry", "reject", "hold", "lease lost", "exit"],
)
def test_an_effect_says_how_its_job_goes_on(
    ledger: Ledger, signal: BaseException, state: str | None, error: str | None
) -> None:
    add(ledger)
    if state is None:
        with pytest.raises(LeaseLost):
            run(ledger, Acting(raising(signal)))
        assert job_of(ledger).state == "running"
        return
    (event,) = run(ledger, Acting(raising(signal)), max_jobs=1)
    assert event.state == state
    assert (event.error or "").startswith(str(error))
    assert job_of(ledger).state == state
    if isinstance(signal, Retry):
        assert job_of(ledger).run_at_ms == NOW + 1_500


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        [1],
        "text",
        {"id": "mine"},
        {"x": {1, 2}},
        {1: "x"},
        {"x": float("nan")},
        {"x": "é" * 40_000},
        {"x": "\ud800"},
    ],
    ids=["none", "list", "string", "reserved", "set", "number as key", "nan", "too large", "surrogate"],
)
def test_an_outcome_that_cannot_stand_in_a_receipt_is_a_failed_attempt(ledger: Ledger, outcome: Any) -> None:
    add(ledger)
    (event,) = run(ledger, Acting(lambda request: outcome), max_jobs=1)
    assert event.state == "queued"
    assert "outcome" in (event.error or "")
    assert ledger.receipts(["a"]) == {}


def test_an_error_whose_message_cannot_be_read_still_lands(ledger: Ledger) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    add(ledger)
    (event,) = run(ledger, Acting(raising(Mute())), max_jobs=1)
    assert (event.state, (event.error or "").splitlines()[0]) == (
        "queued",
        "Mute: (its message could not be read)",
    )


# -- delivery --


def test_an_effect_that_is_not_local_is_not_applied_once_its_lease_is_gone(ledger: Ledger) -> None:
    class Late(Acting):
        @property
        def namespace(self) -> str:  # type: ignore[override]  # read when the request is made, after the claim
            ledger.cancel("a", now_ms=NOW)
            return "tests"

    add(ledger)
    effect = Late(delivery="keyed")
    with pytest.raises(LeaseLost):
        run(ledger, effect)
    assert effect.applied == []


def test_probed_asks_first_but_on_the_very_first_claim(ledger: Ledger) -> None:
    add(ledger)
    effect = Acting(raising(Retry(after_s=0)), delivery="probed")
    run(ledger, effect, max_jobs=3)
    assert [request.fence for request in effect.applied] == [1, 3, 5]
    assert [request.fence for request in effect.asked] == [3, 5]


def test_probed_adopts_what_the_receiver_has_applied(ledger: Ledger) -> None:
    add(ledger)
    run(ledger, Acting(raising(Retry(after_s=0)), delivery="probed"), max_jobs=1)
    effect = Acting(delivery="probed", reconcile=lambda request: Applied({"done": "earlier"}))
    assert run(ledger, effect) == [Event("a", 3, "completed", reused_effect=True)]
    assert effect.applied == []
    assert ledger.receipts(["a"])["a"].outcome == {"done": "earlier"}


@pytest.mark.parametrize(
    "doubt",
    [lambda request: Unknown("it sleeps"), raising(OSError("unreachable")), raising(Retry(after_s=0))],
)
def test_probed_never_applies_in_doubt_and_is_held_at_last(ledger: Ledger, doubt: Any) -> None:
    add(ledger, stamps=Stamps(max_attempts=3))
    run(ledger, Acting(raising(Retry(after_s=0)), delivery="probed"), max_jobs=1)
    effect = Acting(delivery="probed", reconcile=doubt)
    states = [
        event.state
        for late in (10**7, 2 * 10**7, 3 * 10**7)
        for event in run(ledger, effect, now_ms=NOW + late)
    ]
    assert states == ["queued", "held"]
    assert effect.applied == []


def test_once_records_its_start_and_is_held_when_the_attempt_is_lost(ledger: Ledger) -> None:
    add(ledger)

    def die(request: Any) -> Any:
        assert job_of(ledger).started_at_ms == NOW
        raise LeaseLost("as if the process had died")

    with pytest.raises(LeaseLost):
        run(ledger, Acting(die, delivery="once"), lease_ms=10)
    again = Acting(delivery="once")
    assert run(ledger, again, now_ms=NOW + 10) == []
    assert (job_of(ledger).state, job_of(ledger).last_error) == ("held", "attempt lost after its start")
    assert again.applied == []


def test_once_is_completed_by_its_receipt_where_its_worker_died_before_it_could(ledger: Ledger) -> None:
    add(ledger)
    (job,) = ledger.claim(ClaimRequest("dies", lease_ms=10, max_attempts=1), now_ms=NOW)
    assert ledger.begin(job.id, job.version, now_ms=NOW)
    again = Acting(delivery="once")
    ledger.publish(Receipt(job.id, DIGEST, {"done": 1}, job.effect, again.info.version))
    (event,) = run(ledger, again, now_ms=NOW + 10, max_attempts=1)
    assert (event.state, event.reused_effect) == ("completed", True)
    assert again.applied == []


@pytest.mark.parametrize(
    ("error", "state"),
    [(OSError("cut off"), "held"), (Retry(after_s=0), "queued"), (Reject("no"), "dead"), (Hold("?"), "held")],
    ids=["exception", "retry", "reject", "hold"],
)
def test_once_is_held_after_any_exception_but_an_explicit_retry_or_reject(
    ledger: Ledger, error: BaseException, state: str
) -> None:
    add(ledger)
    (event,) = run(ledger, Acting(raising(error), delivery="once"), max_jobs=1)
    assert event.state == state
    assert job_of(ledger).state == state


def test_once_whose_outcome_is_no_outcome_is_held(ledger: Ledger) -> None:
    add(ledger)
    (event,) = run(ledger, Acting(lambda request: None, delivery="once"), max_jobs=1)
    assert event.state == "held"
    assert (event.error or "").startswith("outcome unknown: InvalidInput")


# -- losing the lease --


def test_a_completion_that_is_refused_ends_a_bounded_worker_and_keeps_the_receipt(ledger: Ledger) -> None:
    add(ledger)
    add(ledger, id="b")

    def slow(request: Any) -> dict[str, str]:
        ledger.cancel("a", now_ms=NOW)
        return {"done": "late"}

    with pytest.raises(LeaseLost, match="'a'"):
        run(ledger, Acting(slow))
    assert ledger.receipts(["a"])["a"].outcome == {"done": "late"}
    assert job_of(ledger, "b").version == 0, "nothing more is claimed"


def test_a_following_worker_says_that_a_job_was_lost_and_goes_on(ledger: Ledger) -> None:
    add(ledger)
    add(ledger, id="b")

    def slow(request: Any) -> dict[str, str]:
        if request.id == "a":
            ledger.cancel("a", now_ms=NOW)
        return {}

    events = follow(ledger, Acting(slow))
    assert {event.id: event.state for event in events} == {"a": "lost", "b": "completed"}


def test_a_failure_after_the_lease_was_lost_moves_nothing(ledger: Ledger) -> None:
    add(ledger)

    def slow(request: Any) -> dict[str, str]:
        ledger.cancel("a", now_ms=NOW)
        raise ValueError("late")

    with pytest.raises(LeaseLost):
        run(ledger, Acting(slow))
    assert (job_of(ledger).state, job_of(ledger).last_error) == ("dead", "cancelled")


class Unreachable:
    """A ledger whose heartbeats do not arrive so many times."""

    def __init__(self, ledger: Ledger, times: int, error: Exception) -> None:
        self._ledger = ledger
        self._error = error
        self.left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def heartbeat(self, *arguments: Any, **named: Any) -> bool:
        self.left -= 1
        if self.left >= 0:
            raise self._error
        return self._ledger.heartbeat(*arguments, **named)


@pytest.mark.parametrize(("times", "states"), [(2, ["completed"]), (1_000_000, [])])
def test_a_heartbeat_that_an_effect_asks_for_waits_for_the_ledger_until_the_lease_ends(
    ledger: Ledger, times: int, states: list[str]
) -> None:
    add(ledger)

    def renewing(request: Any) -> dict[str, str]:
        request.heartbeat()
        return {}

    unreachable: Any = Unreachable(ledger, times, LedgerBusy("locked"))
    if states:
        assert [event.state for event in run(unreachable, Acting(renewing), lease_ms=400)] == states
    else:
        with pytest.raises(LeaseLost):
            run(unreachable, Acting(renewing), lease_ms=400)


def test_a_heartbeat_does_not_wait_for_a_ledger_that_was_replaced(ledger: Ledger) -> None:
    add(ledger)
    replaced: Any = Unreachable(ledger, 1, LedgerReplaced("another one"))
    with pytest.raises(LeaseLost):  # once is enough: the next heartbeat would arrive
        run(replaced, Acting(lambda request: request.heartbeat()))
    assert replaced.left == 0


def test_heartbeat_renews_the_lease_and_raises_when_it_is_lost(ledger: Ledger) -> None:
    add(ledger)
    seen = []

    def watched(request: Any) -> dict[str, str]:
        before = request.deadline
        request.heartbeat()
        seen.append((request.deadline > before, request.lost.is_set()))
        ledger.cancel("a", now_ms=NOW)
        with pytest.raises(LeaseLost):
            request.heartbeat()
        seen.append(request.lost.is_set())
        return {}

    with pytest.raises(LeaseLost):
        run(ledger, Acting(watched))
    assert seen == [(True, False), True]


# -- corrupt inputs --


def test_a_job_without_its_input_is_a_broken_promise(tmp_path: Any) -> None:
    from fencepost.core import open_ledger

    with open_ledger(tmp_path / "store") as ledger:
        add(ledger)
        add(ledger, id="b")
        (tmp_path / "store" / "inputs" / "a.json").unlink()
        with pytest.raises(LedgerCorrupt, match=r"inputs/a\.json"):
            run(ledger, Acting())
        assert job_of(ledger).state == "running"
        events = {event.id: event.state for event in follow(ledger, Acting(), lease_ms=1)}
        assert events == {"b": "completed"}


# -- options --


@pytest.mark.parametrize(
    "wrong",
    [
        {"lease_ms": 0},
        {"max_attempts": 0},
        {"max_jobs": 0},
        {"max_jobs": 10_001},
        {"concurrency": 0},
        {"delay_ms": 60_001},
        {"queues": ()},
        {"queues": ("No",)},
        {"timeout_s": -1.0},
        {"now_ms": -1},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    from fencepost.core import InvalidInput

    with pytest.raises(InvalidInput):
        WorkerOptions(claimant="w", **wrong)


def test_not_applied_is_the_only_answer_that_lets_a_probed_effect_go_ahead(ledger: Ledger) -> None:
    add(ledger)
    run(ledger, Acting(raising(Retry(after_s=0)), delivery="probed"), max_jobs=1)
    effect = Acting(delivery="probed", reconcile=lambda request: NotApplied())
    assert run(ledger, effect) == [Event("a", 3, "completed")]
    assert len(effect.applied) == 1


def test_a_crash_point_that_is_passed_by_changes_no_event(ledger: Ledger) -> None:
    add(ledger)
    events: list[Event] = []
    passed: list[str] = []
    Worker(
        ledger,
        {"act": Acting()},
        WorkerOptions(claimant="w", max_jobs=1, now_ms=NOW),
        on_event=events.append,
        crash=lambda point, job: passed.append(point),
    ).run()
    assert passed == ["claim", "effect"]
    assert events == [Event("a", 1, "completed", reused_effect=False)]
