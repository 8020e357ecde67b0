"""A worker that runs for months: heartbeats, time-outs, stopping, waking, outages; real time, real threads.

Nothing here asserts how long anything takes: each test waits for what it can observe, under a generous limit.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    Job,
    LeaseLost,
    Ledger,
    LedgerBusy,
    LedgerFailed,
    LedgerReplaced,
    NewJob,
    Stamps,
    open_ledger,
)
from fencepost.core.errors import Reject, Retry
from fencepost.core.model.events import Event
from fencepost.core.worker.heartbeat import Heartbeats
from fencepost.core.worker.lease import Lease
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker

from tests.waiting import until
from tests.worker.doubles import Acting

LIMIT_S = 60.0


class Running:
    """A following worker in a thread of its own."""

    def __init__(self, ledger: Any, effect: Acting, **options: Any) -> None:
        self.events: list[Event] = []
        self.error: BaseException | None = None
        self.worker = Worker(
            ledger,
            {effect.info.name: effect},
            WorkerOptions(**{"claimant": "w", "sweep_every_s": 0.05} | options),
            on_event=self.events.append,
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:  # noqa: BLE001 - told to the test, whatever it is
            self.error = error

    def stop(self) -> None:
        self.worker.stop()
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error


@contextmanager
def following(ledger: Any, effect: Acting, **options: Any) -> Iterator[Running]:
    running = Running(ledger, effect, **options)
    try:
        yield running
    finally:
        running.worker.stop()
        running.thread.join(LIMIT_S)


@pytest.fixture
def ledger(make_ledger: Callable[[], Ledger]) -> Ledger:
    return make_ledger()


def add(ledger: Ledger, *ids: str, **options: Any) -> None:
    ledger.enqueue([NewJob(id, "x", effect="act", **options) for id in ids])


def state(ledger: Ledger, id: str) -> str:
    job = ledger.get_job(id)
    assert job is not None
    return job.state


class Gate:
    """An effect that tells when it has begun, and returns when it is let go."""

    def __init__(self, *, heed_loss: bool = False) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.requests: list[Any] = []
        self._heed_loss = heed_loss

    def __call__(self, request: Any) -> dict[str, str]:
        self.requests.append(request)
        self.begun.release()
        while not self.go.wait(0.01):
            if self._heed_loss and request.lost.is_set():
                raise LeaseLost("told")
        return {"done": request.id}


# -- heartbeats --


def test_heartbeats_keep_a_long_attempt_alive_past_its_lease(ledger: Ledger) -> None:
    gate = Gate()
    add(ledger, "a")
    with following(ledger, Acting(gate), lease_ms=300) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        first = ledger.get_job("a")
        assert first is not None
        # The lease that the claim gave has ended by the ledger's clock, and the job still belongs to the claim.
        until(lambda: ledger.now_ms() > first.lease_until_ms + 100)
        assert ledger.claim(ClaimRequest(claimant="thief", lease_ms=10, max_attempts=3)) == []
        gate.go.set()
        until(lambda: running.events)
    assert running.events == [Event("a", 1, "completed")]


def test_heartbeats_heed_a_job_s_own_shorter_lease(ledger: Ledger) -> None:
    gate = Gate()
    add(ledger, "a", stamps=Stamps(visibility_timeout_s=0.3))
    with following(ledger, Acting(gate), lease_ms=60_000) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        first = ledger.get_job("a")
        assert first is not None
        until(lambda: ledger.now_ms() > first.lease_until_ms + 100)
        assert ledger.claim(ClaimRequest(claimant="thief", lease_ms=10, max_attempts=3)) == []
        gate.go.set()
        until(lambda: running.events)
    assert running.events == [Event("a", 1, "completed")]


def test_a_refused_heartbeat_tells_the_attempt_and_its_result_is_no_success(ledger: Ledger) -> None:
    gate = Gate(heed_loss=True)
    add(ledger, "a")
    with following(ledger, Acting(gate), lease_ms=300) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        ledger.cancel("a")
        until(lambda: running.events)
    assert [(event.id, event.state) for event in running.events] == [("a", "lost")]
    assert gate.requests[0].lost.is_set()
    assert state(ledger, "a") == "dead"


def test_an_attempt_that_takes_too_long_is_told_and_its_lease_lapses(ledger: Ledger) -> None:
    gate = Gate()
    add(ledger, "a")
    with following(ledger, Acting(gate), lease_ms=400, timeout_s=0.1):
        assert gate.begun.acquire(timeout=LIMIT_S)
        until(lambda: gate.requests[0].lost.is_set())
        # No heartbeat comes any more: another worker gets the job once the lease has ended.
        until(lambda: ledger.claim(ClaimRequest(claimant="next", lease_ms=60_000, max_attempts=9)))
        gate.go.set()
    job = ledger.get_job("a")
    assert job is not None
    assert (job.state, job.attempts) == ("running", 2)


# -- stopping --


def test_stopping_lets_running_attempts_finish_and_claims_nothing_more(ledger: Ledger) -> None:
    gate = Gate()
    add(ledger, "a", "b")
    with following(ledger, Acting(gate)) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        running.worker.stop()
        gate.go.set()
        running.stop()
    assert running.events == [Event("a", 1, "completed")]
    assert state(ledger, "b") == "queued"


def test_what_was_claimed_and_not_started_is_handed_back_uncounted(ledger: Ledger) -> None:
    gate = Gate()

    def effect(request: Any) -> dict[str, str]:
        return gate(request) if request.id == "slow" else {}

    add(ledger, *(f"quick-{n}" for n in range(40)), "slow", *(f"behind-{n}" for n in range(200)))
    with following(ledger, Acting(effect)) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        claimed_ahead = ledger.counts()["running"]
        running.worker.stop()
        until(lambda: ledger.counts()["running"] == 1)
        gate.go.set()
        running.stop()
    assert claimed_ahead > 1, "the worker had claimed ahead"
    behind = [job for job in ledger.jobs().jobs if job.id.startswith("behind")]
    assert {(job.state, job.attempts) for job in behind if job.state == "queued"} == {("queued", 0)}
    assert state(ledger, "slow") == "completed"


def test_after_the_grace_leases_are_left_to_lapse(ledger: Ledger) -> None:
    gate = Gate()
    add(ledger, "a")
    with following(ledger, Acting(gate), lease_ms=300, grace_s=0.05) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        running.stop()
        until(lambda: ledger.claim(ClaimRequest(claimant="next", lease_ms=60_000, max_attempts=9)))
        gate.go.set()
    assert gate.requests[0].lost.is_set()


def test_results_that_wait_for_company_are_settled_while_another_attempt_runs_long(ledger: Ledger) -> None:
    gate = Gate()

    def effect(request: Any) -> dict[str, str]:
        return gate(request) if request.id == "slow" else {}

    add(ledger, *(f"quick-{n}" for n in range(20)), "slow")
    with following(ledger, Acting(effect)):
        assert gate.begun.acquire(timeout=LIMIT_S)
        until(lambda: ledger.counts()["completed"] == 20)
        gate.go.set()


def test_a_worker_stops_after_so_long_without_a_job(ledger: Ledger) -> None:
    add(ledger, "a")
    running = Running(ledger, Acting(), idle_exit_s=0.05)
    running.thread.join(LIMIT_S)
    assert not running.thread.is_alive()
    assert [event.state for event in running.events] == ["completed"]


# -- waking, sweeping --


def test_an_idle_worker_wakes_for_a_new_job_and_for_a_delayed_one(make_ledger: Callable[[], Ledger]) -> None:
    mine, others = make_ledger(), make_ledger()
    with following(mine, Acting()) as running:
        until(lambda: running.worker.idle_since)
        others.enqueue(
            [
                NewJob("now", "x", effect="act"),
                NewJob("soon", "x", effect="act", run_at_ms=others.now_ms() + 300),
            ]
        )
        until(lambda: len(running.events) == 2)
    assert sorted(event.id for event in running.events) == ["now", "soon"]
    for job in mine.jobs().jobs:
        assert job.claimed_at_ms is None or job.claimed_at_ms >= (job.run_at_ms or 0)


def test_an_idle_worker_takes_over_a_lease_that_ends(ledger: Ledger) -> None:
    add(ledger, "a")
    ledger.claim(ClaimRequest(claimant="dies", lease_ms=200, max_attempts=3))
    with following(ledger, Acting()) as running:
        until(lambda: running.events)
    assert running.events == [Event("a", 3, "completed")]


def test_a_following_worker_buries_what_expires_and_purges_what_was_kept_long_enough(ledger: Ledger) -> None:
    now_ms = ledger.now_ms()
    ledger.enqueue([NewJob("late", "x", effect="other", expires_at_ms=now_ms)])
    ledger.enqueue([NewJob("old", "x", effect="other", stamps=Stamps(dead_letter_retention_s=0))])
    ledger.cancel("old")
    with following(ledger, Acting()):
        until(lambda: state(ledger, "late") == "dead" and ledger.get_job("old") is None)


# -- the ledger goes away --


class Flaky:
    """A ledger that cannot be reached while it is told so; otherwise the ledger behind it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.away = threading.Event()
        self.armed = threading.Event()
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._ledger, name)
        if not callable(verb):
            return verb

        def call(*arguments: Any, **named: Any) -> Any:
            if self.away.is_set():
                self.asked += 1
                raise LedgerFailed("disk full")
            return verb(*arguments, **named)

        return call


def test_a_worker_waits_for_a_ledger_that_went_away_says_so_once_and_goes_on(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    flaky, gate = Flaky(ledger), Gate()
    add(ledger, "a", "b")
    with following(flaky, Acting(gate), schedules=False) as running:
        assert gate.begun.acquire(timeout=LIMIT_S)
        flaky.away.set()
        gate.go.set()
        until(lambda: flaky.asked > 3)
        flaky.away.clear()
        until(lambda: len(running.events) == 2)
    assert [(event.id, event.state) for event in running.events] == [("a", "completed"), ("b", "completed")]
    said = [record.getMessage() for record in caplog.records if "cannot be used" in record.getMessage()]
    assert said == ["the ledger cannot be used; claiming nothing until it can: disk full"]


def test_a_completion_whose_answer_was_lost_is_still_known_as_this_claim_s(ledger: Ledger) -> None:
    class Deaf(Flaky):
        """Commits the first settlement, and loses the answer."""

        deaf = True

        def settle_and_claim(self, settlements: Any, request: Any, **named: Any) -> Any:
            if settlements and self.deaf:
                self.deaf = False
                self._ledger.settle(settlements, **named)
                raise LedgerFailed("connection reset")
            return self._ledger.settle_and_claim(settlements, request, **named)

    add(ledger, "a")
    with following(Deaf(ledger), Acting()) as running:
        until(lambda: running.events)
    assert [(event.id, event.state) for event in running.events] == [("a", "completed")]


def test_a_heartbeat_that_cannot_reach_the_ledger_is_lost_when_the_lease_ends(ledger: Ledger) -> None:
    flaky, gate = Flaky(ledger), Gate()
    add(ledger, "a")
    with following(flaky, Acting(gate), lease_ms=300):
        assert gate.begun.acquire(timeout=LIMIT_S)
        flaky.away.set()
        until(lambda: gate.requests[0].lost.is_set())
        assert gate.requests[0].remaining_s() == 0
        flaky.away.clear()
        gate.go.set()


@pytest.mark.parametrize("verb", ["settle_and_claim", "sweep_expired", "heartbeat"])
def test_a_fault_in_any_of_the_worker_s_threads_ends_it_loudly(ledger: Ledger, verb: str) -> None:
    def absurd(*arguments: Any, **named: Any) -> Any:
        raise ZeroDivisionError("a bug")

    broken = Flaky(ledger)
    setattr(broken, verb, absurd)
    add(ledger, "a")
    gate = Gate()
    running = Running(broken, Acting(gate), lease_ms=90, grace_s=0.0)
    running.thread.join(LIMIT_S)
    gate.go.set()
    assert isinstance(running.error, ZeroDivisionError)


def test_a_sealed_ledger_ends_a_following_worker(tmp_path: Any) -> None:
    with open_ledger(tmp_path / "store") as ledger:
        ledger.seal("sqlite:/elsewhere.db")
        running = Running(ledger, Acting())
        running.thread.join(LIMIT_S)
        assert isinstance(running.error, LedgerFailed)
        assert "elsewhere.db" in str(running.error)


@pytest.mark.parametrize("name", ["store", "store.db"])
def test_a_worker_waits_for_a_store_that_was_moved_away_and_ends_where_another_takes_its_place(
    tmp_path: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, elsewhere = tmp_path / name, tmp_path / f"moved-{name}"

    files = ["", "-wal", "-shm"]
    """What is added to the name: a database never stands in its place without its log."""

    def move(old: Path, new: Path, suffixes: Iterable[str]) -> None:
        for suffix in suffixes:
            with suppress(FileNotFoundError):  # a folder has nothing beside it
                Path(f"{old}{suffix}").rename(f"{new}{suffix}")

    with open_ledger(place) as ledger:
        add(ledger, "a")
        running = Running(ledger, Acting())
        until(lambda: len(running.events) == 1)
        move(place, elsewhere, files)
        until(lambda: "moved away" in caplog.text)
        move(elsewhere, place, reversed(files))
        add(ledger, "b")
        until(lambda: len(running.events) == 2)
        move(place, elsewhere, files)
        with open_ledger(place) as other:
            add(other, "c")
            running.thread.join(LIMIT_S)
            assert isinstance(running.error, LedgerReplaced)
            assert other.counts()["queued"] == 1


# -- clocks that step --


def test_clock_steps_never_lose_a_job_or_let_two_holders_complete_it(tmp_path: Any) -> None:
    wall = {"ms": 1_000_000}
    with open_ledger(tmp_path / "store.db", clock=lambda: wall["ms"]) as ledger:
        add(ledger, *(f"j{n}" for n in range(20)))
        steps = iter((-500_000, 900_000, -1, 60_001, -900_000, 1_000_000) * 10)

        def stepping(request: Any) -> dict[str, str]:
            wall["ms"] = max(0, wall["ms"] + next(steps))
            return {}

        completed: list[str] = []
        for _ in range(20):
            with following(
                ledger, Acting(stepping), idle_exit_s=0.0, max_attempts=99, schedules=False
            ) as running:
                running.thread.join(LIMIT_S)
            completed += [event.id for event in running.events if event.state == "completed"]
            wall["ms"] += 10_000_000
            if ledger.counts()["completed"] == 20:
                break
        assert sorted(completed) == sorted(f"j{n}" for n in range(20)), "each exactly once"


def test_the_job_that_observers_are_told_of_is_the_claim(ledger: Ledger) -> None:
    told: list[tuple[str, Any]] = []

    class Telling:
        def __getattr__(self, hook: str) -> Callable[..., None]:
            return lambda *arguments: told.append((hook, arguments[0]))

    add(ledger, "a")
    options = WorkerOptions(claimant="w", max_jobs=1)
    Worker(ledger, {"act": Acting()}, options, observers=Telling()).run()
    assert [hook for hook, _ in told] == ["worker_started", "job_claimed", "job_completed", "worker_stopped"]
    job = told[1][1]
    assert isinstance(job, Job)
    assert (job.id, job.version, job.state) == ("a", 1, "running")


def only(verb: str, faults: int, ledger: Ledger) -> Flaky:
    """The ledger, of which one verb is answered by ``LedgerBusy`` so many times, as soon as it is armed."""
    flaky = Flaky(ledger)
    left = faults

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        if flaky.armed.is_set() and left:
            left -= 1
            flaky.asked += 1
            raise LedgerBusy("locked")
        return getattr(ledger, verb)(*arguments, **named)

    setattr(flaky, verb, call)
    return flaky


def test_what_an_outage_kept_from_being_settled_is_settled_while_another_attempt_runs_long(
    ledger: Ledger,
) -> None:
    gate = Gate()
    armed = Acting(lambda request: gate(request) if request.id.startswith("long") else {"done": request.id})
    flaky = only("settle", 1, ledger)
    add(ledger, "quick-1", "quick-2", "quick-3", "quick-4")
    with following(flaky, armed) as running:
        until(lambda: len(running.events) == 4)  # from here on it claims ahead
        flaky.armed.set()
        add(ledger, "brief", "long")
        assert gate.begun.acquire(timeout=LIMIT_S)
        until(lambda: len(running.events) == 5)
        assert state(ledger, "long") == "running"
        gate.go.set()


def test_an_error_at_the_second_queue_costs_nothing_that_the_first_one_gave(ledger: Ledger) -> None:
    flaky = Flaky(ledger)

    def claim(settlements: Any, request: Any, **named: Any) -> Any:
        if request.queues == ("b",):
            flaky.asked += 1
            if flaky.asked == 1:
                raise LedgerBusy("locked")
        return ledger.settle_and_claim(settlements, request, **named)

    flaky.settle_and_claim = claim
    add(ledger, "one", queue="a", stamps=Stamps(max_attempts=1))
    with following(flaky, Acting(), queues=("a", "b"), concurrency=2, lease_ms=400) as running:
        until(lambda: running.events)
        until(lambda: flaky.asked)
    assert [(event.id, event.state) for event in running.events] == [("one", "completed")]


def test_a_claimed_job_is_handed_back_before_a_lease_of_its_own_ends(ledger: Ledger) -> None:
    gate = Gate()
    effect = Acting(lambda request: gate(request) if request.id == "long" else {})
    add(ledger, "quick-1", "quick-2", "quick-3", "quick-4")
    with following(ledger, effect) as running:
        until(lambda: len(running.events) == 4)
        ledger.enqueue(
            [
                NewJob("long", "x", effect="act"),
                NewJob("short", "x", effect="act", stamps=Stamps(visibility_timeout_s=0.3, max_attempts=1)),
            ]
        )
        assert gate.begun.acquire(timeout=LIMIT_S)
        until(lambda: state(ledger, "short") == "queued")
        gate.go.set()
        until(lambda: len(running.events) == 6)
    assert {event.state for event in running.events} == {"completed"}


def test_a_heartbeat_that_hangs_does_not_keep_an_attempt_from_being_told(ledger: Ledger) -> None:
    flaky, gate, release = Flaky(ledger), Gate(), threading.Event()

    def hang(*arguments: Any, **named: Any) -> bool:
        release.wait(LIMIT_S)
        return False

    flaky.heartbeat = hang
    add(ledger, "a")
    with following(flaky, Acting(gate), lease_ms=300):
        assert gate.begun.acquire(timeout=LIMIT_S)
        until(lambda: gate.requests[0].lost.is_set())
        release.set()
        gate.go.set()


def test_sweeps_that_cannot_reach_the_ledger_say_so_once_and_try_again_ever_more_slowly(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    flaky = Flaky(ledger)
    flaky.away.set()
    with following(flaky, Acting(), sweep_every_s=0.0):
        until(lambda: "sweeps" in caplog.text)  # slots ask, too, and may have asked often before
        asked = flaky.asked
        until(lambda: flaky.asked > asked + 3)
    said = [record.getMessage() for record in caplog.records if "sweeps" in record.getMessage()]
    assert said == ["sweeps and schedules wait for the ledger: disk full"]


def test_a_worker_is_not_idle_while_its_ledger_is_away(ledger: Ledger) -> None:
    flaky = Flaky(ledger)
    with following(flaky, Acting(), idle_exit_s=0.5, schedules=False) as running:
        until(lambda: running.worker.idle_since)
        flaky.away.set()
        until(lambda: running.worker.idle_since is None)
        add(ledger, "a")
        flaky.away.clear()
        until(lambda: running.events)


def test_a_stop_does_not_wait_for_a_ledger_that_is_away_once_for_each_job(ledger: Ledger) -> None:
    gate = Gate()
    effect = Acting(lambda request: gate(request) if request.id == "long" else {})
    flaky = only("release", 100, ledger)
    flaky.armed.set()
    add(ledger, *(f"quick-{n}" for n in range(20)))
    with following(flaky, effect) as running:
        until(lambda: len(running.events) == 20)
        add(ledger, "long", *(f"waiting-{n}" for n in range(9)))
        assert gate.begun.acquire(timeout=LIMIT_S)
        running.worker.stop()
        until(lambda: flaky.asked)
        gate.go.set()
        running.stop()
    assert flaky.asked == 1


def test_outcomes_that_share_one_dict_are_each_receipt_s_own(ledger: Ledger) -> None:
    shared: dict[str, Any] = {}

    def apply(request: Any) -> dict[str, Any]:
        shared.update(who=request.id, deep=[{"who": request.id}])
        return shared

    ids = [f"job-{n}" for n in range(30)]
    add(ledger, *ids)
    with following(ledger, Acting(apply)) as running:
        until(lambda: len(running.events) == 30)
    found = ledger.receipts(ids)
    assert {id: found[id].outcome for id in ids} == {id: {"who": id, "deep": [{"who": id}]} for id in ids}


@pytest.mark.parametrize("after_s", ["30", float("inf"), float("nan"), 1e17, [1], True])
def test_a_retry_after_what_is_no_span_is_a_failed_attempt_like_any_other(
    ledger: Ledger, after_s: Any
) -> None:
    def apply(request: Any) -> Any:
        raise Retry("later", after_s=after_s)

    add(ledger, "a", stamps=Stamps(max_attempts=1))
    with following(ledger, Acting(apply)) as running:
        until(lambda: running.events)
    assert [(event.id, event.state) for event in running.events] == [("a", "dead")]
    assert "after_s" in str(running.events[0].error)


def test_a_receiver_that_could_not_be_asked_leaves_the_outcome_unknown(ledger: Ledger) -> None:
    def cannot(request: Any) -> Any:
        raise Reject("the receiver refuses the question")

    add(ledger, "a", stamps=Stamps(max_attempts=2))
    assert ledger.claim(ClaimRequest(claimant="before", lease_ms=1, max_attempts=2))
    with following(ledger, Acting(delivery="probed", reconcile=cannot)) as running:
        until(lambda: running.events)
    assert [(event.id, event.state) for event in running.events] == [("a", "held")]


def test_a_sooner_beat_is_never_put_off_by_a_later_one(ledger: Ledger) -> None:
    heartbeats = Heartbeats(ledger, now_ms=None, timeout_s=None, failed=lambda error: None)
    job = NewJob("a", "x", effect="act").queued(enqueued_at_ms=0)
    lease = Lease(job, length_s=30.0, claim_sent=time.monotonic())
    with heartbeats._changed:
        late = threading.Thread(target=heartbeats.add, args=(lease,))
        late.start()
        until(heartbeats.running)
        # It waits for the lock that this test holds.
        until(lambda: late.ident and sys._current_frames()[late.ident].f_code.co_name == "__enter__")
        heartbeats._next_look = 1.0
    late.join(LIMIT_S)
    assert heartbeats._next_look == 1.0


def test_a_heartbeat_that_answers_late_does_not_take_back_what_a_later_one_renewed() -> None:
    job = NewJob("a", "x", effect="act").queued(enqueued_at_ms=0)
    lease = Lease(job, length_s=30.0, claim_sent=0.0)
    lease.extended(20.0)
    lease.extended(5.0)
    assert (lease.deadline, lease.next_beat) == (50.0, 30.0)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_bounded_worker_that_cannot_read_an_input_ends_without_waiting_for_its_grace(
    ledger: Ledger, concurrency: int
) -> None:
    flaky = only("read_inputs", 2, ledger)
    flaky.armed.set()
    add(ledger, "a")
    running = Running(flaky, Acting(), max_jobs=1, concurrency=concurrency, grace_s=10 * LIMIT_S)
    running.thread.join(LIMIT_S)
    assert not running.thread.is_alive()
    assert isinstance(running.error, LedgerBusy)
    assert state(ledger, "a") == "running"
