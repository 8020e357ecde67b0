"""Progress of long work: a bar where stderr is a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

REDRAW_S: Final = 0.1


class ReportProgress(Protocol):
    """Takes reports of the progress."""

    def __call__(self, done: int, said: str = "") -> None:
        """Report how much is done; ``said`` says it in words."""


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[ReportProgress]:
    """Show how much of ``total`` is done until the block ends; None means that the total is not known."""
    if not sys.stderr.isatty():
        yield lambda done, said="": None
        return
    # rich is slow to load, and only a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *([TaskProgressColumn()] if total is not None else []),
        TextColumn("{task.fields[said]}"),
        *([TimeRemainingColumn(compact=True)] if total is not None else []),
        console=Console(file=sys.stderr),
        transient=True,
    )
    next_s = 0.0

    def report(done: int, said: str = "") -> None:
        nonlocal next_s
        if (now_s := time.monotonic()) >= next_s or done == total:
            next_s = now_s + REDRAW_S
            shown.update(task, completed=done, said=said)

    with shown:
        task = shown.add_task(what, total=total, said="")
        yield report
