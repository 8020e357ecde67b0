"""``fencepost doctor``: check a ledger, and name a remedy for each finding."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from ...effects.count import effect_outcome
from ..doctor.examine import Report, examine
from ..errors import InvalidInput
from ..ledgers.open import ledger_exists, open_inspection
from ..model.clock import logical, wall_ms
from ..stores import store_name
from .installed import effect_here
from .ui import options
from .ui.output import print_document, wants_json
from .ui.progress import progress


def doctor(
    store: options.Store = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compute every digest and every count again. [default: those of the latest 1,000 receipts]",
        ),
    ] = False,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Check a ledger without changing it; exit 1 if anything is wrong, and name a remedy for each finding.

    Files and modes, the schema, the engine's own check, parts that are missing, receipts that do not match, held and
    stuck jobs, clocks, file systems. Workers may go on meanwhile.

    Example: fencepost doctor --store jobs.db --verify
    """
    name = store_name(store, config)
    if not ledger_exists(name):
        raise InvalidInput(f"{name}: there is no ledger of that name; say which with --store")
    logical_ms = options.logical_or_none(now_ms)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with open_inspection(name, clock=clock) as inspection, progress("looking at jobs") as report_progress:
        at_ms = inspection.now_ms() if logical_ms is None else logical_ms
        report = examine(
            inspection,
            now_ms=at_ms,
            verify=verify,
            count=effect_outcome,
            lacks_settings=lambda effect: effect_here(effect, config).lacks_settings,
            progress=report_progress,
        )
        location = inspection.location
    if wants_json(as_json):
        print_document(_document(report, location))
    else:
        from .ui.render import draw_findings  # rich is slow to load, and only a terminal needs it

        draw_findings(report, location)
    if report.findings:
        # The findings are printed although the status is 1: they are what the person asked for.
        raise typer.Exit(1)


def _document(report: Report, location: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "store": location,
        "sound": not report.findings,
        "findings": [asdict(finding) for finding in report.findings],
        "entries": report.entries,
        "receipts": report.receipts,
        "receipts_verified": report.verified,
    }
