"""``fencepost sweep``: bury expired jobs, and purge dead ones whose retention has ended."""

from __future__ import annotations

from typing import Annotated

import typer

from ..model.inputs import check_name
from .ui import complete, options
from .ui.output import print_document, wants_json
from .ui.store import open_existing


def sweep(
    store: options.Store = None,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", autocompletion=complete.queues, help="Only this queue.")
    ] = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Bury jobs that have expired, and purge dead ones whose retention has ended.

    A worker with --follow sweeps by itself.

    Example: fencepost sweep --store jobs.db --queue mail
    """
    if queue is not None:
        check_name(queue, "queue")
    with open_existing(store, config, now_ms) as ledger:
        swept = ledger.sweep_expired(queue=queue, now_ms=options.logical_or_none(now_ms))
    if wants_json(as_json):
        print_document({"schema_version": 1, "expired": swept.expired, "purged": swept.purged})
    else:
        print(f"buried {swept.expired:,} expired jobs, purged {swept.purged:,} dead ones")
