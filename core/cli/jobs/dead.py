"""``fencepost dead``: list dead jobs, queue them again, or purge them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ...model.job import DEAD
from ..ui import options
from ..ui.store import actor_or_user, instant, open_existing
from . import bulk, selection

app = typer.Typer(
    name="dead",
    help="List dead jobs, queue them again, or purge them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="These dead jobs; or choose many with --queue and more."),
]


@app.command("list")
def list_dead(
    store: options.Store = None,
    queue: selection.Queue = None,
    effect: selection.Effect = None,
    error: selection.ErrorText = None,
    older_than: selection.OlderThan = None,
    newer_than: selection.NewerThan = None,
    min_attempts: selection.MinAttempts = None,
    max_attempts: selection.MaxAttempts = None,
    after: selection.After = None,
    limit: selection.Limit = 100,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Show the dead jobs that fit the filters, in order of enqueue, a page at a time.

    Example: fencepost dead list --store jobs.db --queue mail --error Timeout --newer-than 2h
    """
    filters = selection.Filters(queue, effect, error, older_than, newer_than, min_attempts, max_attempts)
    with open_existing(store, config, now_ms) as ledger:
        at_ms = instant(ledger, now_ms)
        query = filters.on(ledger, at_ms, states=[DEAD])
        selection.print_page(
            ledger, ledger.jobs(replace(query, after=after, limit=limit)), at_ms, as_json=as_json
        )


@app.command()
def redrive(
    ids: Ids = None,
    store: options.Store = None,
    queue: selection.Queue = None,
    effect: selection.Effect = None,
    error: selection.ErrorText = None,
    older_than: selection.OlderThan = None,
    newer_than: selection.NewerThan = None,
    min_attempts: selection.MinAttempts = None,
    max_attempts: selection.MaxAttempts = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Queue dead jobs again, with no attempts used. A job whose outcome is unknown is held instead.

    By ids, or all of one queue that fit the filters: then look with --dry-run first.

    Example: fencepost dead redrive --store jobs.db --queue mail --error Timeout --dry-run
    """
    filters = selection.Filters(queue, effect, error, older_than, newer_than, min_attempts, max_attempts)
    who = actor_or_user(actor)
    with open_existing(store, config, now_ms) as ledger:
        bulk.move_chosen(
            ledger,
            lambda id: ledger.redrive(id, actor=who, reason=reason, now_ms=options.logical_or_none(now_ms)),
            ids or [],
            filters,
            state=DEAD,
            now_ms=instant(ledger, now_ms),
            verb="redrive",
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )


@app.command()
def purge(
    ids: Ids = None,
    store: options.Store = None,
    queue: selection.Queue = None,
    effect: selection.Effect = None,
    error: selection.ErrorText = None,
    older_than: selection.OlderThan = None,
    newer_than: selection.NewerThan = None,
    min_attempts: selection.MinAttempts = None,
    max_attempts: selection.MaxAttempts = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Purge dead jobs now, whatever their retention; their ids stay bound to their texts.

    By ids, or all of one queue that fit the filters: then look with --dry-run first.

    Example: fencepost dead purge --store jobs.db --queue mail --older-than 30d --dry-run
    """
    filters = selection.Filters(queue, effect, error, older_than, newer_than, min_attempts, max_attempts)
    who = actor_or_user(actor)
    with open_existing(store, config, now_ms) as ledger:
        bulk.move_chosen(
            ledger,
            lambda id: ledger.purge(id, actor=who, reason=reason, now_ms=options.logical_or_none(now_ms)),
            ids or [],
            filters,
            state=DEAD,
            now_ms=instant(ledger, now_ms),
            verb="purge",
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )
