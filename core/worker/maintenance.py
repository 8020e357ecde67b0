"""What a running worker does beside its jobs: flushing, time-outs, stopping, sweeps and schedules."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from ..errors import LedgerError
from ..ledgers.protocol import Ledger
from .options import WorkerOptions
from .prefetch import outage_nap_s

if TYPE_CHECKING:
    from .worker import Worker

_log = logging.getLogger("fencepost.worker")

LOOK_S: Final = 0.1
MAX_SCHEDULE_NAP_S: Final = 5.0
"""How soon a schedule that another process registered is noticed."""


class Housekeeper:
    """Runs in the thread that called ``Worker.run``, so that signals reach it at once."""

    def __init__(self, worker: Worker, ledger: Ledger, options: WorkerOptions) -> None:
        self._worker = worker
        self._options = options
        self._ended = threading.Event()
        self._sweeper = (
            None
            if options.bounded
            else threading.Thread(
                target=self._keep_sweeping,
                args=(ledger,),
                name="fencepost-sweeps",
                daemon=True,
            )
        )

    def keep(self, slots: Sequence[threading.Thread]) -> None:
        """Keep house until every slot has ended, or the grace of a stop is over."""
        if self._sweeper is not None:
            self._sweeper.start()
        try:
            give_up_at = float("inf")
            while any(slot.is_alive() for slot in slots):
                if self._worker.stopping and give_up_at == float("inf"):
                    give_up_at = monotonic() + self._options.grace_s
                    self._worker.hand_back()
                if monotonic() >= give_up_at:
                    self._leave_running()
                    break
                self._look()
            self._worker.hand_back()
            self._worker.flush()
        finally:
            self._ended.set()

    def _look(self) -> None:
        worker, options = self._worker, self._options
        worker.news.wait(LOOK_S)
        worker.news.clear()
        worker.flush()  # without news, too: what an outage kept from being settled is news to nobody
        worker.tell_lapsed()
        if options.timeout_s is not None:
            for attempt in worker.running():
                if not attempt.lost and monotonic() - attempt.started >= options.timeout_s:
                    worker.give_up(attempt)
                    _log.warning(
                        "%s: the attempt has taken %g s and is given up; its slot stays taken until it returns",
                        attempt.job.id,
                        options.timeout_s,
                    )
        if not worker.stopping:
            if not options.bounded:
                worker.hand_back(of_lease=1 / 3)
            idle = worker.idle_since
            if (
                options.idle_exit_s is not None
                and idle is not None
                and monotonic() - idle >= options.idle_exit_s
            ):
                _log.info("nothing to do for %g s: the worker stops", options.idle_exit_s)
                worker.stop()

    def _keep_sweeping(self, ledger: Ledger) -> None:
        try:
            _sweep_and_fire(ledger, self._options, self._ended)
        except BaseException as error:  # noqa: BLE001 - a worker that no longer sweeps must end, and be seen
            self._worker.fail(error)

    def _leave_running(self) -> None:
        for attempt in self._worker.running():
            self._worker.give_up(attempt)
            _log.warning("%s: still running after the grace; its lease will lapse", attempt.job.id)


def _sweep_and_fire(ledger: Ledger, options: WorkerOptions, ended: threading.Event) -> None:
    """Bury what has expired, purge what was kept long enough, fire schedules; until ``ended``.

    Any number of workers may do so at once: each step is atomic, so the work is done once, by whoever is first.
    """
    next_sweep = monotonic()
    scheduling = options.schedules and ledger.capabilities.has_schedules
    failures = 0
    while True:
        try:
            due_s = _fire(ledger, options.now_ms) if scheduling else MAX_SCHEDULE_NAP_S
            if monotonic() >= next_sweep:
                swept = ledger.sweep_expired(now_ms=options.now_ms)
                next_sweep = monotonic() + options.sweep_every_s
                if swept.expired or swept.purged:
                    _log.info("swept: %d expired, %d purged", swept.expired, swept.purged)
            nap_s = max(0.01, min(due_s, MAX_SCHEDULE_NAP_S, next_sweep - monotonic()))
            failures = 0
        except LedgerError as error:
            if not failures:
                _log.warning("sweeps and schedules wait for the ledger: %s", error)
            failures += 1
            nap_s = outage_nap_s(failures)
        if ended.wait(nap_s):
            return


def _fire(ledger: Ledger, now_ms: int | None) -> float:
    """Fire what is due, and say how many seconds it is to the next boundary."""
    for fire in ledger.tick(now_ms=now_ms):
        if fire.error is not None:
            _log.error("the schedule %r cannot fire: %s", fire.schedule, fire.error)
        else:
            _log.info("the schedule %r fired %s", fire.schedule, fire.id)
    soonest_ms = ledger.soonest()
    if soonest_ms is None:
        return MAX_SCHEDULE_NAP_S
    return (soonest_ms - (ledger.now_ms() if now_ms is None else now_ms)) / 1_000
