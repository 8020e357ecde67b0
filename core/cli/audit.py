"""``fencepost audit``: list the manual actions on a ledger."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from .ui import options
from .ui.output import print_document, wants_json
from .ui.store import instant, open_existing


def audit(
    store: options.Store = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Only of this job (or queue, for pauses)."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many of the latest to show.")] = 100,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """List the manual actions on the ledger, oldest first: cancel, redrive, resolve, purge, pause, resume, seal, copy.

    Each entry was recorded together with its action, and nothing changes or removes it.

    Example: fencepost audit --store jobs.db --id order-17
    """
    with open_existing(store, config, now_ms) as ledger:
        entries = ledger.audit(id=id, limit=limit)
        at_ms = instant(ledger, now_ms)
    if wants_json(as_json):
        print_document({"schema_version": 1, "audit": [asdict(entry) for entry in entries]})
        return
    from .ui.render import draw_audit  # rich is slow to load, and only a terminal needs it

    draw_audit(entries, at_ms)
