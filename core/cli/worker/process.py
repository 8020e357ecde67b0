"""Running a worker as a process: its events, the health file, and what is printed; ``signals.py`` has how it stops."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Final, TextIO

from ...errors import FencepostError
from ...ledgers.protocol import Ledger
from ...model.documents import compact
from ...model.effect import Effect
from ...model.events import Event, Observers
from ...worker.options import WorkerOptions
from ...worker.settle import CrashHook
from ...worker.worker import Worker
from ..garbage import keep_what_start_has_made
from ..ui.output import print_document, write
from ..ui.progress import progress
from .signals import Signals

_log = logging.getLogger("fencepost.worker")

HEALTH_EVERY_S: Final = 1.0


def run_worker(
    ledger: Ledger,
    effects: Mapping[str, Effect],
    options: WorkerOptions,
    *,
    observers: Observers,
    crash: CrashHook | None,
    health_file: str | None,
    clock_name: str,
    signals: Signals,
    out: TextIO,
) -> None:
    """Run the worker to its end, and print its events to ``out``."""
    events: list[Event] = []
    # One attempt is soon over, and nobody knows how many a following worker will make.
    shown = progress("working", total=options.max_jobs) if (options.max_jobs or 1) > 1 else nullcontext()
    with shown as tell:

        def keep(event: Event) -> None:
            events.append(event)
            if tell is not None:
                tell(len(events), f"{len(events):,} attempts")

        lines = Lines(out, when_unread=lambda: worker.stop())
        worker = Worker(
            ledger,
            effects,
            options,
            on_event=keep if options.bounded else lines,
            observers=observers,
            crash=crash,
            healthy=(lambda: None) if health_file is None else Health(health_file),
        )
        signals.attach(worker)
        if not options.bounded:
            keep_what_start_has_made()
        worker.run()
    lines.raise_if_unread()
    if options.bounded:
        documents = [event.document() for event in events]
        print_document({"schema_version": 1, "events": documents, "clock": clock_name}, out)


def default_claimant() -> str:
    """host:pid:start, for people: who it was, even when the process number is used again."""
    return f"{os.uname().nodename}:{os.getpid()}:{int(time.time())}"


class Lines:
    """Prints an event a line. When the lines can no longer be written, the worker is stopped in order."""

    def __init__(self, out: TextIO, *, when_unread: Callable[[], None]) -> None:
        self._out = out
        self._when_unread = when_unread
        self._error: BrokenPipeError | FencepostError | None = None

    def __call__(self, event: Event) -> None:
        """Print it."""
        if self._error is not None:
            return
        try:
            write(compact(event.document()).encode("utf-8") + b"\n", self._out)
        except (BrokenPipeError, FencepostError) as error:
            # Not raised here: the exchange that told this event may have claimed jobs, which must be handed back.
            self._error = error
            self._when_unread()

    def raise_if_unread(self) -> None:
        """Raise the error of the first line that could not be written."""
        if self._error is not None:
            raise self._error


class Health:
    """Touches a file when the worker gets on, at most once a second."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._next = 0.0

    def __call__(self) -> None:
        """The worker got on."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + HEALTH_EVERY_S
        try:
            with open(self._path, "ab"):
                os.utime(self._path)
        except OSError as error:
            _log.error("the health file %s cannot be touched: %s", self._path, error)
