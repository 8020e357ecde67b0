"""Waiting for the ledger: while a claim has found nothing, a thread sleeps until another one could find something."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from time import monotonic
from typing import Final

from ..errors import LedgerError
from ..ledgers.protocol import Ledger
from .options import WorkerOptions

SLICE_S: Final = 0.25
"""How long the thread waits before it looks whether the worker has ended."""
POLL_S: Final = 5.0
"""How long an idle worker trusts the ledger's wake-ups alone."""
MIN_NAP_S: Final = 0.05
"""The shortest wait for an instant that has passed without a claim finding anything."""


class LedgerWatch:
    """A thread that turns a commit, or an instant that comes due, into a wake of the dispatcher."""

    def __init__(
        self,
        ledger: Ledger,
        effects: Sequence[str],
        options: WorkerOptions,
        *,
        wake: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._effects = tuple(effects)
        self._options = options
        self._wake = wake
        self._failed = failed
        self._orders: SimpleQueue[bool] = SimpleQueue()
        """From the dispatcher: True begins a watch, False ends the thread."""
        self._ended = False
        """Written by the dispatcher."""
        self.watching = False
        """True from ``begin`` until the watch is over: set by the dispatcher, taken back by the thread."""
        self.error: LedgerError | None = None
        """What ended the last watch, if it was no wake-up; written by the thread while ``watching``."""
        self._thread = threading.Thread(target=self._run, name="fencepost-watch", daemon=True)

    def start(self) -> None:
        """Start the thread; it watches when it is asked to."""
        self._thread.start()

    def begin(self) -> None:
        """Watch from now on, and wake the dispatcher when ``watching`` is over."""
        self.error = None
        self.watching = True
        self._orders.put(True)

    def stop(self) -> None:
        """End the thread. Returns when the ledger is no longer asked, or does not answer."""
        self._ended = True
        self._orders.put(False)
        if self._thread.ident is not None:  # else its start failed
            self._thread.join(4 * SLICE_S)

    def _run(self) -> None:
        try:
            while self._orders.get():
                try:
                    self._watch()
                except LedgerError as error:
                    self.error = error
                self.watching = False
                self._wake()
        except BaseException as error:  # noqa: BLE001 - a worker that no longer wakes must end, and be seen
            self._failed(error)

    def _watch(self) -> None:
        until = monotonic() + self._nap_s()
        while not self._ended and (left_s := until - monotonic()) > 0:
            if self._ledger.wait(min(left_s, SLICE_S)):
                return

    def _nap_s(self) -> float:
        """Until the next instant at which a claim could find something; a commit may come sooner."""
        if self._options.now_ms is not None:
            return POLL_S
        due_ms = self._ledger.next_due_ms(queues=self._options.queues, effects=self._effects)
        if due_ms is None:
            return POLL_S
        return min(max((due_ms - self._ledger.now_ms()) / 1_000, MIN_NAP_S), POLL_S)
