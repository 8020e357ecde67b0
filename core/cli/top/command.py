"""``fencepost top``: watch a ledger live."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import Annotated, Final, Optional

import typer

from ...errors import InvalidInput, LedgerError
from ..ui import options
from ..ui.output import print_document, wants_json
from ..ui.store import open_existing
from .snapshot import Sampler, Snapshot, document

DEFAULT_INTERVAL_S: Final = 2.0


def top(
    store: options.Store = None,
    interval: Annotated[
        Optional[float],  # noqa: UP045 - typer reads the annotation
        typer.Option(
            metavar="SPAN",
            parser=options.span_s,
            help="How often to read the ledger; from 100ms to 1h. [default: 2s]",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Draw once, and leave it on the screen.")] = False,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Watch a ledger live: queues and their rates, running jobs and the rest of their leases, the latest deaths.

    On a terminal it runs until q is pressed; elsewhere it prints one snapshot as JSON. A large ledger is counted less
    often, so that counting takes no more than a tenth of the time.

    Example: fencepost top --store jobs.db --interval 1
    """
    interval_s = DEFAULT_INTERVAL_S if interval is None else interval
    if not 0.1 <= interval_s <= 3_600:
        raise InvalidInput("--interval must be from 100ms to 1h")
    with open_existing(store, config, now_ms) as ledger:
        sampler = Sampler(ledger, now_ms=options.logical_or_none(now_ms))
        first = sampler.sample()
        if wants_json(as_json):
            print_document(document(first))
        elif once:
            _print_once(first)
        else:
            _live(sampler, first, interval_s)


def _print_once(snapshot: Snapshot) -> None:
    # rich is slow to load, and only a terminal needs it.
    from ..ui.tables import console
    from .view import draw

    width, height = shutil.get_terminal_size()
    lines = draw(console(width=width), snapshot, width=width, height=height)[:-1]
    while lines and not lines[-1].strip():
        lines.pop()
    print("\n".join(lines))


def _live(sampler: Sampler, snapshot: Snapshot, interval_s: float) -> None:
    # rich is slow to load, and only a terminal needs it.
    from ..ui.tables import console
    from .screen import Screen
    from .view import draw

    with Screen() as screen:
        next_s = time.monotonic() + interval_s
        while not screen.ended:
            width, height = screen.size
            screen.show(draw(console(width=width), snapshot, width=width, height=height))
            keys = screen.wait(max(0.0, next_s - time.monotonic()))
            if "q" in keys or "Q" in keys:
                return
            if time.monotonic() >= next_s:
                try:
                    snapshot = sampler.sample()
                except LedgerError as error:
                    # A person may watch a ledger that is unavailable for a while, until it is back.
                    snapshot = replace(snapshot, fault=str(error))
                next_s = time.monotonic() + interval_s
