"""What the dispatcher and the slots hand each other: attempts to make, and attempts that are finished."""

from __future__ import annotations

from collections import deque
from queue import Empty, SimpleQueue
from typing import NamedTuple

from .attempt import Attempt, Verdict


class Finish(NamedTuple):
    """An attempt that is over."""

    attempt: Attempt
    verdict: Verdict
    at: float
    """The ``time.monotonic()`` second at which it was over."""


class Wake:
    """Ends the dispatcher's wait. Anyone may call ``set``, a signal handler included.

    ``threading.Event`` cannot serve: a handler that interrupts its ``wait`` would block on its lock for ever, while
    ``SimpleQueue.put`` is reentrant.
    """

    def __init__(self) -> None:
        self._tokens: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """End the wait that is under way, or the next one."""
        if not self._is_set:
            self._is_set = True
            self._tokens.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Sleep until ``set`` or the time-out; False: it was the time-out."""
        try:
            self._tokens.get(timeout=timeout_s)
        except Empty:
            return False
        self._is_set = False  # before the caller looks at what has changed: a later change sets it again
        return True


class Work:
    """Two queues between the dispatcher and the slots, and the event that wakes the dispatcher.

    The dispatcher says in ``wake_at_finish`` and ``wake_at_ready`` what it waits for, and looks once more before it
    sleeps. A slot changes a queue first and reads these fields then, so that one of the two always sees the other.
    """

    def __init__(self, wake: Wake) -> None:
        self.wake = wake
        self._ready: SimpleQueue[Attempt | None] = SimpleQueue()
        self._finished: deque[Finish] = deque()
        self.wake_at_finish = False
        """Written by the dispatcher: wake it when an attempt finishes."""
        self.wake_at_ready = -1
        """Written by the dispatcher: wake it when only this many attempts are left to start."""

    # -- for the slots --

    def get(self) -> Attempt | None:
        """The next attempt to make; waits for one. None: there will be none."""
        attempt = self._ready.get()
        if self._ready.qsize() <= self.wake_at_ready:
            self.wake.set()
        return attempt

    def put(self, finish: Finish) -> None:
        """Hand an attempt back that is over."""
        self._finished.append(finish)
        if self.wake_at_finish:
            self.wake.set()

    # -- for the dispatcher --

    @property
    def ready(self) -> int:
        """How many attempts no slot has taken yet."""
        return self._ready.qsize()

    @property
    def finished(self) -> int:
        """How many attempts are over that ``drain`` has not returned."""
        return len(self._finished)

    def first_finished(self) -> Finish | None:
        """The first attempt to finish of those that ``drain`` has not returned."""
        return self._finished[0] if self._finished else None

    def add(self, attempts: list[Attempt]) -> None:
        """Let the slots have these attempts."""
        for attempt in attempts:
            self._ready.put(attempt)

    def next(self) -> Attempt | None:
        """The next attempt that no slot has taken; None where there is none."""
        try:
            return self._ready.get_nowait()
        except Empty:
            return None

    def take_back(self) -> list[Attempt]:
        """All the attempts that no slot has taken."""
        return list(iter(self.next, None))

    def drain(self) -> list[Finish]:
        """Take all the attempts that are over, the first to finish in front."""
        return [self._finished.popleft() for _ in range(len(self._finished))]

    def end(self, slots: int) -> None:
        """Let this many slots end once they have nothing left to make."""
        for _ in range(slots):
            self._ready.put(None)
