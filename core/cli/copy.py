"""``fencepost copy``: move a whole ledger to another one, of any kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..ledgers.open import open_ledger
from ..ledgers.transfer import copy_ledger
from ..model.clock import logical, wall_ms
from .ui import options
from .ui.output import print_document, wants_json
from .ui.progress import progress
from .ui.store import actor_or_user, open_existing


def copy(
    source: Annotated[
        str, typer.Option("--from", metavar="STORE", help="The ledger to move. It is sealed for good.")
    ],
    destination: Annotated[
        str,
        typer.Option("--to", metavar="STORE", help="The destination: a new ledger, or an unfinished copy."),
    ],
    actor: options.Actor = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
) -> None:
    """Move a whole ledger: every job in its state, inputs, receipts, purged ids, pauses and schedules.

    The source is sealed first: from then on it refuses every change and names the destination. Its audit stays there.
    Stop the workers first: no lease may be valid. Where a copy ends midway, the same command continues it; until it
    has ended, the destination refuses every change, too. To copy again after that changes nothing.

    Example: fencepost copy --from jobs-data --to jobs.db
    """
    logical_ms = options.logical_or_none(now_ms)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with open_existing(source, None, now_ms) as old, open_ledger(destination, clock=clock) as new:
        with progress("copying", total=sum(old.counts().values())) as report_progress:
            copied = copy_ledger(
                old,
                new,
                actor=actor_or_user(actor),
                now_ms=logical_ms,
                progress=lambda rows: report_progress(rows, f"{rows:,} ids"),
            )
        where = {"from": old.location, "to": new.location}
    if wants_json(as_json):
        print_document({"schema_version": 1} | where | asdict(copied))
        return
    print(f"copied {copied.rows:,} ids, {copied.new:,} of them in this run, to {where['to']}")
    print(f"{where['from']} is sealed: start the workers on the new one, and keep or delete the old one")
