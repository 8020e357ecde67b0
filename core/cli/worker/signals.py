"""What happens at SIGTERM and SIGINT: the worker stops in order, and the process ends in any case."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Final

from ...worker.worker import Worker

_log = logging.getLogger("fencepost.worker")

OVERDUE_S: Final = 10.0
"""How long after its grace a worker may take to end: each look at a ledger that is locked takes half a minute."""


def stop_on_signals(worker: Worker, *, grace_s: float) -> None:
    """Stop the worker in order at the first SIGTERM or SIGINT, and end the process at once at the second one.

    The process ends ``OVERDUE_S`` after the grace, whether or not the ledger and the effects answer.
    """

    def stop(number: int, frame: object) -> None:
        if worker.stopping:
            os._exit(1)
        worker.stop()
        overdue = threading.Timer(grace_s + OVERDUE_S, end_at_once)
        overdue.daemon = True
        overdue.start()

    def end_at_once() -> None:
        _log.error(
            "the worker has not ended %g s after its grace, because its ledger or an effect does not answer: it ends "
            "at once, and what it holds waits for its leases to end",
            OVERDUE_S,
        )
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
