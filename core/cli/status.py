"""``fencepost status``: print the jobs of a store and their receipts as one document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Optional

import typer

from ..ledgers.open import open_ledger
from ..model.fields import shown
from ..model.job import State
from ..model.query import JobQuery
from ..model.receipts import Receipt
from ..model.records import Page
from ..stores import store_name
from .ui import options
from .ui.output import print_document

FIRST_PAGE: Final = 1_000
MAX_SHOWN: Final = 100_000
"""More jobs than a directory ledger can hold."""


def status(
    store: options.Store = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_SHOWN,
            help="How many jobs to show. [default: all of a folder, 1000 of an SQL ledger]",
        ),
    ] = None,
    config: options.Config = None,
) -> None:
    """Show the jobs in order of enqueue, and the receipts of those shown; makes an empty store if there is none.

    It is no audit: a receipt can be shown whose job is not completed yet.

    Example: fencepost status --store jobs-data
    """
    with open_ledger(store_name(store, config)) as ledger:
        few = ledger.capabilities.has_line_enqueue
        page = ledger.jobs(JobQuery(limit=limit or (FIRST_PAGE if few else MAX_SHOWN)))
        receipts = ledger.receipts(job.id for job in page.jobs)
        counts = ledger.counts()
        print_document(_document(page, receipts, counts))


def _document(page: Page, receipts: Mapping[str, Receipt], counts: Mapping[State, int]) -> dict[str, Any]:
    total = sum(counts.values())
    rest = f"; {total - len(page.jobs):,} more: see `fencepost jobs list`, or --limit" if page.next else ""
    return {
        "schema_version": 1,
        "jobs": [shown(job) for job in page.jobs],
        "effects": [receipts[job.id].document() for job in page.jobs if job.id in receipts],
        "scope": {
            "shown": len(page.jobs),
            "counts": dict(counts),
            "note": "the jobs as of one instant, then their receipts; a receipt may be there whose completion is "
            f"still pending; no audit{rest}",
        },
    }
