"""Running a worker as a process: its logs, the health file, and what is printed; ``signals.py`` has how it stops."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, Final, TextIO

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
from .signals import stop_on_signals

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
    log_format: str,
    clock_name: str,
    out: TextIO,
) -> None:
    """Run the worker to its end, and print its events to ``out``."""
    level = logging.WARNING if options.bounded else logging.INFO
    events: list[Event] = []
    # One attempt is soon over, and nobody knows how many a following worker will make.
    shown = progress("working", total=options.max_jobs) if (options.max_jobs or 1) > 1 else nullcontext()
    with shown as tell:

        def keep(event: Event) -> None:
            events.append(event)
            if tell is not None:
                tell(len(events), f"{len(events):,} attempts")

        set_up_logs(log_format, level=level)
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
        stop_on_signals(worker, grace_s=options.grace_s)
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
    """Prints an event a line. When whoever reads them has gone, the worker is stopped in order."""

    def __init__(self, out: TextIO, *, when_unread: Callable[[], None]) -> None:
        self._out = out
        self._when_unread = when_unread
        self._unread: BrokenPipeError | None = None

    def __call__(self, event: Event) -> None:
        """Print it."""
        if self._unread is not None:
            return
        try:
            write(compact(event.document()).encode("utf-8") + b"\n", self._out)
        except BrokenPipeError as error:
            self._unread = error
            self._when_unread()

    def raise_if_unread(self) -> None:
        """Raise the error of the first line that nobody read."""
        if self._unread is not None:
            raise self._unread


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


class JsonLines(logging.Formatter):
    """One JSON object a log line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logs(log_format: str, *, level: int) -> None:
    """Send the program's own log lines to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if log_format == "json" else logging.Formatter("%(asctime)s %(levelname)-7s %(message)s")
    )
    ours = logging.getLogger("fencepost")
    ours.handlers = [handler]
    ours.setLevel(level)
    ours.propagate = False
