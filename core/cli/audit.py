"""``fencepost audit``: who did what, when and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from .ui import options
from .ui.output import for_a_program, print_document
from .ui.store import instant, open_existing


def audit(
    store: options.Store = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Only of this job (or queue, for pauses)."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The latest so many.")] = 100,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """List the manual actions on the ledger, oldest first: cancel, redrive, resolve, purge, pause, resume, seal, copy.

    Each was recorded together with the action itself, and nothing removes or changes an entry.

    Example: fencepost audit --store jobs.db --id order-17
    """
    with open_existing(store, config, now_ms) as ledger:
        entries = ledger.audit(id=id, limit=limit)
        at_ms = instant(ledger, now_ms)
    if for_a_program(as_json):
        print_document({"schema_version": 1, "audit": [asdict(entry) for entry in entries]})
        return
    from .ui.render import draw_audit  # rich is slow to load, and only a terminal needs it

    draw_audit(entries, at_ms)
