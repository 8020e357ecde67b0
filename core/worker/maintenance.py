"""What a following worker does for the whole ledger, beside its own jobs: sweeps, and schedules that come due."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

from ..errors import LedgerError
from ..ledgers.protocol import Ledger
from .options import WorkerOptions
from .prefetch import outage_nap_s

_log = logging.getLogger("fencepost.worker")

STOP_S: Final = 1.0
"""How long the end of a worker waits for a step that the ledger does not end."""
MAX_SCHEDULE_NAP_S: Final = 5.0
"""How soon a schedule that another process registered is noticed."""


class Maintenance:
    """A thread that buries what has expired, purges what was kept long enough, and fires schedules.

    Any number of workers may do so at once: each step is atomic, so the work is done once, by whoever is first.
    """

    def __init__(
        self, ledger: Ledger, options: WorkerOptions, *, failed: Callable[[BaseException], None]
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._failed = failed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fencepost-maintenance", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Returns after the step that it is taking, or when the ledger does not answer."""
        self._ended.set()
        if self._thread.ident is not None:  # else its start failed, or a bounded worker never began it
            self._thread.join(STOP_S)

    def _run(self) -> None:
        try:
            self._maintain()
        except BaseException as error:  # noqa: BLE001 - a worker that no longer sweeps must end, and be seen
            self._failed(error)

    def _maintain(self) -> None:
        ledger, options = self._ledger, self._options
        scheduling = options.schedules and ledger.capabilities.has_schedules
        next_sweep = monotonic()
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
                if (
                    self._ended.is_set()
                ):  # the worker no longer waits for this thread, and the ledger may be closed
                    return
                if not failures:
                    _log.warning("sweeps and schedules wait for the ledger: %s", error)
                failures += 1
                nap_s = outage_nap_s(failures)
            if self._ended.wait(nap_s):
                return


def _fire(ledger: Ledger, now_ms: int | None) -> float:
    """Fire what is due, and return how many seconds it is to the next boundary."""
    for fire in ledger.tick(now_ms=now_ms):
        if fire.error is not None:
            _log.error("the schedule %r cannot fire: %s", fire.schedule, fire.error)
        elif fire.unfinished is not None:
            _log.info("the schedule %r did not fire: %s is unfinished", fire.schedule, fire.unfinished)
        else:
            _log.info("the schedule %r fired %s", fire.schedule, fire.id)
    soonest_ms = ledger.soonest()
    if soonest_ms is None:
        return MAX_SCHEDULE_NAP_S
    return (soonest_ms - (ledger.now_ms() if now_ms is None else now_ms)) / 1_000
