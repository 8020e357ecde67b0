"""``fencepost copy``: a whole ledger moves to another one, of any kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..ledgers.open import open_ledger
from ..ledgers.transfer import copy_ledger
from ..model.clock import logical, wall_ms
from .ui import options
from .ui.output import for_a_program, print_document
from .ui.progress import progress
from .ui.store import actor_or_user, open_existing


def copy(
    source: Annotated[
        str, typer.Option("--from", metavar="STORE", help="The ledger that moves. It is sealed for good.")
    ],
    destination: Annotated[
        str,
        typer.Option("--to", metavar="STORE", help="Where it moves: a new ledger, or an unfinished copy."),
    ],
    actor: options.Actor = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
) -> None:
    """Move a whole ledger: every job in its state, inputs, receipts, purged ids, pauses and schedules.

    The source is sealed first: from then on it refuses every change by name of the destination, and only its audit
    stays there. No lease may be live: stop the workers. Where a copy ends midway, the same command goes on with it;
    until it has ended the destination refuses every change, too. One that has ended is left as it is.

    Example: fencepost copy --from jobs-data --to jobs.db
    """
    logical_ms = options.logical_or_none(now_ms)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with open_existing(source, None, now_ms) as old, open_ledger(destination, clock=clock) as new:
        with progress("copying", total=sum(old.counts().values())) as tell:
            copied = copy_ledger(
                old,
                new,
                actor=actor_or_user(actor),
                now_ms=logical_ms,
                progress=lambda rows: tell(rows, f"{rows:,} ids"),
            )
        where = {"from": old.location, "to": new.location}
    if for_a_program(as_json):
        print_document({"schema_version": 1} | where | asdict(copied))
        return
    print(f"copied {copied.rows:,} ids, {copied.new:,} of them in this run, to {where['to']}")
    print(f"{where['from']} is sealed: start the workers on the new one, and keep or delete the old one")
