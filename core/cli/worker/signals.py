"""How a worker's process ends: by signals, and in time whatever keeps it."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Final

from ...worker.worker import Worker

_log = logging.getLogger("fencepost.worker")

OVERDUE_S: Final = 10.0
"""How long after its grace a worker may take to end: each look at a ledger that is locked takes half a minute."""


STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


class Guard:
    """A thread that ends the process at once when a deadline has passed.

    It is there from the start, so that a signal handler needs no new thread, and it still runs while Python ends.
    """

    def __init__(self) -> None:
        self._deadlines: SimpleQueue[tuple[float, str] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="fencepost-guard", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end_within(self, seconds: float, reason: str) -> None:
        """End the process after this time, unless a sooner deadline is set. Safe in a signal handler."""
        self._deadlines.put((monotonic() + seconds, reason))

    def closed(self) -> None:
        """Nothing is left to do but to end; from the end of the main thread on that may take ``OVERDUE_S``."""
        self._deadlines.put(None)

    def _run(self) -> None:
        at, reason = float("inf"), ""
        while True:
            try:
                # A lock can wait for 9e9 seconds; a longer grace is none.
                deadline = self._deadlines.get(timeout=min(max(0.0, at - monotonic()), threading.TIMEOUT_MAX))
            except Empty:
                _end_at_once(reason)
            if deadline is None:
                break
            at, reason = min((at, reason), deadline)
        threading.main_thread().join()
        threading.Event().wait(OVERDUE_S)
        _end_at_once("a thread that an effect has started, or a function of atexit, does not end")


def _end_at_once(reason: str) -> None:
    _log.error(
        "the worker has not ended in %g s, because %s: it ends at once, and what it holds waits for its leases to end",
        OVERDUE_S,
        reason,
    )
    os._exit(1)


class Signals:
    """SIGTERM and SIGINT of a worker's process, from before the first line of a plugin's code.

    The first one stops the worker in order, also when it comes before there is one. The second one ends the process
    at once. So does the guard ``OVERDUE_S`` after the grace. A forked child has the handlers that it would have had
    without the worker: it is not the worker, and must end when it is told to.
    """

    def __init__(self, guard: Guard, *, grace_s: float) -> None:
        self._guard = guard
        self._grace_s = grace_s
        self._worker: Worker | None = None
        self.stopping = False
        """Written by the signal handler."""
        self._forking = threading.local()
        """The signal mask of a thread that forks, as it was before."""

    def install(self) -> None:
        """Set the handlers."""
        for number in STOPPING:
            signal.signal(number, self._stop)
        os.register_at_fork(
            before=self._hold_signals,
            after_in_parent=self._let_signals_go,
            after_in_child=self._leave_to_child,
        )

    def attach(self, worker: Worker) -> None:
        """Stop this worker from now on; at once, if a signal has come before."""
        self._worker = worker
        if self.stopping:
            worker.stop()

    def _stop(self, number: int, frame: object) -> None:
        if self.stopping:
            os._exit(1)
        self.stopping = True
        if self._worker is None:  # nothing is claimed, so that there is nothing to wait for
            self._guard.end_within(OVERDUE_S, "a plugin or the ledger does not let it start")
            return
        self._worker.stop()
        self._guard.end_within(
            self._grace_s + OVERDUE_S, "its ledger or an effect does not answer after the grace"
        )

    # -- forks: a signal that came to a child before it has its own handlers would be lost --

    def _hold_signals(self) -> None:
        self._forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)

    def _let_signals_go(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._forking.mask)

    def _leave_to_child(self) -> None:
        for number, default in (
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
        ):
            if signal.getsignal(number) == self._stop:
                signal.signal(number, default)
        self._let_signals_go()


@contextmanager
def ending_in_time(guard: Guard) -> Iterator[Callable[[], None]]:
    """Yield a function that the caller calls when the run is over; from then on the block has ``OVERDUE_S`` to end."""
    try:
        yield lambda: guard.end_within(OVERDUE_S, "the effect_close of an effect does not return")
    finally:
        guard.closed()
