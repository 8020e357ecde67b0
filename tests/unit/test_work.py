"""What the dispatcher and the slots hand each other is never lost, and no wake of the dispatcher is."""

from __future__ import annotations

import signal
import threading
from typing import Any

from fencepost.core import NewJob
from fencepost.core.worker.attempt import Attempt, Lost
from fencepost.core.worker.lease import Lease
from fencepost.core.worker.work import Finish, Wake, Work

LIMIT_S = 30.0


def attempt(n: int) -> Attempt:
    job = NewJob(f"job-{n}", "x").queued(enqueued_at_ms=0)
    effect: Any = None
    return Attempt(job, effect, Lease(job, length_s=30.0, claim_sent=0.0))


def test_a_wake_that_was_set_before_the_wait_ends_it_and_only_that_one() -> None:
    wake = Wake()
    wake.set()
    wake.set()
    assert wake.wait(LIMIT_S)
    assert not wake.wait(0.0)
    wake.set()
    assert wake.wait(LIMIT_S)


def test_a_signal_handler_may_set_the_wake_at_any_instant() -> None:
    wake, handled = Wake(), 0

    def handle(number: int, frame: object) -> None:
        nonlocal handled
        handled += 1
        wake.set()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
    try:
        while handled < 2_000:
            assert wake.wait(LIMIT_S)  # with a lock that is not reentrant this would never return
            wake.set()
            assert wake.wait(LIMIT_S)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_each_attempt_is_taken_once_and_each_finish_reaches_a_dispatcher_that_sleeps() -> None:
    work, jobs, slots = Work(Wake()), 20_000, 4

    def slot() -> None:
        while (taken := work.get()) is not None:
            work.put(Finish(taken, Lost(), 0.0))

    threads = [threading.Thread(target=slot) for _ in range(slots)]
    for thread in threads:
        thread.start()
    added, seen = 0, []
    while len(seen) < jobs:
        seen += [finish.attempt.job.id for finish in work.drain()]
        if added < jobs:
            work.add([attempt(n) for n in range(added, added + 5)])
            added += 5
        work.wake_at_finish = True
        if not work.finished and len(seen) < jobs:
            assert work.wake.wait(LIMIT_S)
        work.wake_at_finish = False
    work.end(slots)
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert sorted(seen) == sorted(f"job-{n}" for n in range(jobs))


def test_a_slot_looks_whether_to_wake_the_dispatcher_after_it_has_handed_back() -> None:
    class GoesToSleepLast(Work):
        """A dispatcher that says that it sleeps at the last instant at which it has looked in vain."""

        @property
        def wake_at_finish(self) -> bool:
            return self.finished > 0

        @wake_at_finish.setter
        def wake_at_finish(self, value: bool) -> None:
            pass

    work = GoesToSleepLast(Wake())
    work.put(Finish(attempt(1), Lost(), 0.0))
    assert work.wake.wait(LIMIT_S)


def test_the_dispatcher_is_woken_when_few_attempts_are_left_to_start() -> None:
    work = Work(Wake())
    work.add([attempt(n) for n in range(3)])
    work.wake_at_ready = 1
    assert work.get() is not None
    assert work.get() is not None
    assert work.wake.wait(LIMIT_S)
    assert work.ready == 1


def test_what_no_slot_has_taken_comes_back_in_order() -> None:
    work = Work(Wake())
    work.add([attempt(n) for n in range(3)])
    taken = work.get()
    assert taken is not None
    assert [left.job.id for left in work.take_back()] == ["job-1", "job-2"]
    assert work.next() is None
