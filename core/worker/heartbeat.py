"""Heartbeats: leases of running attempts are renewed, and attempts whose lease or time is over are told.

Two threads, so that neither a busy effect nor a ledger that hangs keeps an attempt from being told. The watching
thread knows every instant and never touches the ledger; the sending thread does nothing but send what is due.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Final

from ..errors import LeaseLost, LedgerBusy, LedgerError, LedgerFailed, LedgerReplaced, LedgerSealed
from ..ledgers.protocol import Ledger
from .lease import NEVER, Lease

_log = logging.getLogger("fencepost.worker")

GONE: Final = (LedgerReplaced, LedgerSealed)
"""No waiting brings such a ledger back."""


class Heartbeats:
    """Keeps each registered lease: renews it at a third of its length, until it is taken off or lost.

    A heartbeat that cannot reach the ledger is sent again until the lease ends; then the lease is lost. An attempt
    that takes longer than ``timeout_s`` is given up: its lease is no longer renewed, and its effect is told.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        now_ms: int | None,
        timeout_s: float | None,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._now_ms = now_ms
        self._timeout_s = timeout_s
        self._failed = failed
        self._leases: dict[int, Lease] = {}
        """Slots add and remove; the watching thread reads copies."""
        self._due: SimpleQueue[Lease | None] = SimpleQueue()
        """From the watching thread to the sending one; None ends it."""
        self._changed = threading.Condition()
        """Guards the two fields that follow."""
        self._next_look = NEVER
        self._stopped = False
        self._threads = (
            threading.Thread(target=self._guarded, args=(self._watch,), name="fencepost-leases", daemon=True),
            threading.Thread(
                target=self._guarded, args=(self._send,), name="fencepost-heartbeats", daemon=True
            ),
        )

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both threads: leases that are still kept lapse. Returns when no heartbeat is under way."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._due.put(None)
        for thread in self._threads:
            if thread.ident is not None:  # else its start failed
                thread.join()

    # -- for the slots --

    @property
    def stopped(self) -> bool:
        """Whether leases are kept no longer, because the worker ends."""
        return self._stopped

    def add(self, lease: Lease) -> None:
        """Keep this lease from now on."""
        self._leases[id(lease)] = lease
        instant = lease.next_beat
        if self._timeout_s is not None:
            lease.give_up_at = monotonic() + self._timeout_s
            instant = min(instant, lease.give_up_at)
        if instant < self._next_look:  # rare: most attempts end long before their first beat
            self._look_by(instant)

    def remove(self, lease: Lease) -> None:
        """Keep this lease no longer."""
        self._leases.pop(id(lease), None)

    def running(self) -> list[Lease]:
        """The leases that are kept now."""
        return list(self._leases.values())

    def give_up(self, lease: Lease) -> None:
        """Let the lease lapse, and tell the effect; the slot stays taken until the effect returns."""
        self.remove(lease)
        lease.lose()

    def beat(self, lease: Lease) -> bool:
        """Renew the lease now; False and lost where the ledger refuses.

        Raises:
            LedgerError: the ledger was not reached.
        """
        sent = monotonic()
        job = lease.job
        extend_ms = round(lease.length_s * 1_000)
        if self._ledger.heartbeat(job.id, job.version, extend_ms=extend_ms, now_ms=self._now_ms):
            lease.extended(sent)
            return True
        lease.lose()
        return False

    def renew(self, lease: Lease) -> None:
        """Renew the lease now; a ledger that cannot be reached is asked again until the lease ends.

        Raises:
            LeaseLost: the ledger refused, or the lease ended first.
        """
        while not lease.lost:
            try:
                if self.beat(lease):
                    return
            except (LedgerBusy, LedgerFailed) as error:
                if isinstance(error, GONE) or monotonic() >= lease.deadline:
                    lease.lose()
                else:
                    time.sleep(lease.retry_s)
        raise _lost(lease)

    def begin(self, lease: Lease) -> None:
        """Record that the attempt of a ``once`` effect starts.

        Raises:
            LeaseLost: the ledger refused.
        """
        if not self._ledger.begin(lease.job.id, lease.job.version, now_ms=self._now_ms):
            lease.lose()
            raise _lost(lease)

    # -- the two threads --

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - without heartbeats every lease would lapse unseen
            self._failed(error)

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._stopped and (left_s := self._next_look - monotonic()) > 0:
                    self._changed.wait(None if left_s == NEVER else left_s)
                if self._stopped:
                    return
                self._next_look = NEVER
            soonest = min((self._look(lease) for lease in self.running()), default=NEVER)
            with self._changed:
                self._next_look = min(self._next_look, soonest)

    def _look(self, lease: Lease) -> float:
        """Do what is due for this lease, and return the next instant at which something will be."""
        now = monotonic()
        if lease.lost:
            return NEVER
        if now >= lease.deadline:
            lease.lose()
            _log.error("%s: the lease ended without a heartbeat reaching the ledger", lease.job.id)
            return NEVER
        if now >= lease.give_up_at:
            self.give_up(lease)
            _log.warning(
                "%s: the attempt has taken %g s and is given up; its slot stays taken until it returns",
                lease.job.id,
                self._timeout_s,
            )
            return NEVER
        if not lease.beating and now >= lease.next_beat:
            lease.beating = True
            self._due.put(lease)
        return min(lease.deadline if lease.beating else lease.next_beat, lease.deadline, lease.give_up_at)

    def _look_by(self, instant: float) -> None:
        """Let the watching thread look at this instant, if it would look later."""
        with self._changed:
            self._next_look = min(self._next_look, instant)
            self._changed.notify()

    def _send(self) -> None:
        while (lease := self._due.get()) is not None:
            if lease.lost or self._stopped:
                continue
            try:
                if (
                    not self.beat(lease) and id(lease) in self._leases
                ):  # else the attempt has just ended by itself
                    _log.warning("%s: the lease of claim %d is lost", lease.job.id, lease.job.version)
            except LedgerError as error:
                lease.next_beat = monotonic() + lease.retry_s
                _log.debug("%s: a heartbeat did not reach the ledger: %s", lease.job.id, error)
            lease.beating = False
            self._look_by(lease.next_beat)


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"the claim {lease.job.version} of job {lease.job.id!r} no longer holds")
