"""Progress on stderr, where somebody looks at it: a bar on a terminal, and nothing at all anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

Told = Callable[[int], None]
"""Told how much is done so far."""

REDRAW_S: Final = 0.1


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Told]:
    """Show how much of ``total`` is done (None: nobody knows how much there is), until the block ends."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn() if total is not None else TextColumn("{task.completed:,}"),
        *([TimeRemainingColumn(compact=True)] if total is not None else []),
        console=Console(file=sys.stderr),
        transient=True,
    )
    next_s = 0.0

    def tell(done: int) -> None:
        nonlocal next_s
        if (now_s := time.monotonic()) >= next_s or done == total:
            next_s = now_s + REDRAW_S
            shown.update(task, completed=done)

    with shown:
        task = shown.add_task(what, total=total)
        yield tell
