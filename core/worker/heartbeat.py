"""Heartbeats: a thread of its own renews the leases of running attempts, so that a busy effect cannot starve them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

from ..errors import LedgerError
from ..ledgers.protocol import Ledger
from .attempt import Attempt

_log = logging.getLogger("fencepost.worker")


class Heart:
    """Renews each registered attempt's lease at a third of it, until it is taken off or lost.

    A heartbeat that cannot reach the ledger is sent again until the lease ends; then the attempt is lost.
    """

    def __init__(
        self, ledger: Ledger, *, now_ms: int | None, failed: Callable[[BaseException], None]
    ) -> None:
        self._ledger = ledger
        self._now_ms = now_ms
        self._failed = failed
        self._attempts: dict[int, Attempt] = {}
        self._changed = threading.Condition()
        self._next_look = float("inf")
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="fencepost-heartbeats", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """End: leases that are still held lapse. Returns when no heartbeat is under way."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()

    def add(self, attempt: Attempt) -> None:
        """Keep this attempt's lease. Nearly always free: only a sooner beat than any other wakes the thread."""
        self._attempts[id(attempt)] = attempt
        if attempt.next_beat < self._next_look:
            with self._changed:
                self._next_look = min(self._next_look, attempt.next_beat)
                self._changed.notify()

    def remove(self, attempt: Attempt) -> None:
        """Let go of it."""
        self._attempts.pop(id(attempt), None)

    def running(self) -> list[Attempt]:
        """The attempts whose leases are kept now."""
        return list(self._attempts.values())

    def tell_lapsed(self) -> None:
        """Tell the attempts whose lease has ended; for a second thread, too, since a heartbeat may hang."""
        for attempt in self.running():
            if not attempt.lost and monotonic() >= attempt.deadline:
                attempt.lose()
                _log.error("%s: the lease ended without a heartbeat reaching the ledger", attempt.job.id)

    def beat(self, attempt: Attempt) -> bool:
        """Renew the lease now; False and lost where that is refused.

        Raises:
            LedgerError: the ledger was not reached.
        """
        sent = monotonic()
        job = attempt.job
        extend_ms = round(attempt.lease_s * 1_000)
        if self._ledger.heartbeat(job.id, job.version, extend_ms=extend_ms, now_ms=self._now_ms):
            attempt.extended(sent)
            return True
        attempt.lose()
        return False

    def _run(self) -> None:
        try:
            self._keep_beating()
        except BaseException as error:  # noqa: BLE001 - without heartbeats every lease would lapse unseen
            self._failed(error)

    def _keep_beating(self) -> None:
        while True:
            with self._changed:
                # A sooner beat only makes the wait shorter: most attempts have ended long before their first one.
                while not self._stopped and (left_s := self._next_look - monotonic()) > 0:
                    self._changed.wait(None if left_s == float("inf") else left_s)
                if self._stopped:
                    return
                self._next_look = float("inf")
            soonest = float("inf")
            for attempt in self.running():
                self._keep(attempt)
                if not attempt.lost:
                    soonest = min(soonest, attempt.next_beat)
            with self._changed:
                self._next_look = min(self._next_look, soonest)

    def _keep(self, attempt: Attempt) -> None:
        if attempt.lost or attempt.next_beat > monotonic():
            return
        try:
            if not self.beat(attempt) and id(attempt) in self._attempts:  # else it has just ended by itself
                _log.warning("%s: the lease of claim %d is lost", attempt.job.id, attempt.job.version)
        except LedgerError as error:
            attempt.next_beat = monotonic() + attempt.retry_s
            _log.debug("%s: a heartbeat did not reach the ledger: %s", attempt.job.id, error)
            self.tell_lapsed()
