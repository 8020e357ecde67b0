"""``fencepost jobs``: find jobs, explain one, cancel or reschedule jobs, decide held ones."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from ...errors import InvalidInput
from ...model.documents import parse
from ...model.durations import instant_ms
from ...model.job import HELD, Decision, whole_ms
from ...model.receipts import check_outcome
from ..ui import options
from ..ui.output import print_document, wants_json
from ..ui.store import actor_or_user, instant, open_existing
from . import selection
from .actions import move_each, report
from .bulk import move_chosen
from .detail import document, job_detail

app = typer.Typer(
    name="jobs",
    help="Find jobs, see why one has not run, cancel or reschedule jobs, decide held ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class StateName(StrEnum):
    """The states that ``--state`` takes."""

    queued = "queued"
    running = "running"
    completed = "completed"
    dead = "dead"
    held = "held"


Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="The jobs, by their ids.")]
SomeIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="These held jobs; or choose many with --queue and more."),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The job, by its id.")]


@app.command("list")
def list_jobs(
    store: options.Store = None,
    state: Annotated[list[StateName] | None, typer.Option(help="Only in this state. Repeatable.")] = None,
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
    """Show the jobs that fit the filters, in order of enqueue, a page at a time.

    Example: fencepost jobs list --store jobs.db --state queued --queue mail --min-attempts 2 --error Timeout
    """
    filters = selection.Filters(queue, effect, error, older_than, newer_than, min_attempts, max_attempts)
    with open_existing(store, config, now_ms) as ledger:
        at_ms = instant(ledger, now_ms)
        query = filters.on(ledger, at_ms, states=None if state is None else [one.value for one in state])
        selection.print_page(
            ledger, ledger.jobs(replace(query, after=after, limit=limit)), at_ms, as_json=as_json
        )


@app.command()
def show(
    id: Id,
    store: options.Store = None,
    text: Annotated[bool, typer.Option("--text", help="Also print the text of the input.")] = False,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Show all of a job: why it is in its state, what happens next and when, its input, its receipt.

    Example: fencepost jobs show order-17 --store jobs.db
    """
    with open_existing(store, config, now_ms) as ledger:
        detail = job_detail(ledger, id, instant(ledger, now_ms), config=config)
    if wants_json(as_json):
        print_document(document(detail, store=store, with_text=text))
    else:
        from .render import draw_job  # rich is slow to load, and only a terminal needs it

        draw_job(detail, store=store, with_text=text)


@app.command()
def cancel(
    ids: Ids,
    store: options.Store = None,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Bury jobs that are queued or running; what a worker still reports of one is refused.

    The effect of a running job may be under way: cancelling does not undo it.

    Example: fencepost jobs cancel order-17 order-18 --store jobs.db --reason "the customer withdrew"
    """
    who = actor_or_user(actor)
    with open_existing(store, config, now_ms) as ledger:
        done = move_each(
            ledger,
            ids,
            lambda id: ledger.cancel(id, actor=who, reason=reason, now_ms=options.logical_or_none(now_ms)),
            verb="cancel",
            fits="queued or running",
        )
    report(done, "cancel", as_json=as_json)


@app.command()
def reschedule(
    ids: Ids,
    store: options.Store = None,
    run_at: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Not before this: ISO 8601 (2026-12-31T06:00Z), or epoch ms."),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            metavar="SPAN", parser=options.span_s, help="Not before this long from now; wins over --run-at."
        ),
    ] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="Larger goes first.")] = None,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Give queued jobs another time, another priority, or both; --delay 0 lets them run now.

    Example: fencepost jobs reschedule report-7 --delay 2h --store jobs.db
    """
    run_at_ms = None if run_at is None else instant_ms(run_at, "--run-at")
    if (run_at_ms, delay, priority) == (None, None, None):
        raise InvalidInput("say what is to change: --run-at, --delay or --priority")
    who = actor_or_user(actor)
    with open_existing(store, config, now_ms) as ledger:
        if delay is not None:
            run_at_ms = instant(ledger, now_ms) + whole_ms(delay)
        done = move_each(
            ledger,
            ids,
            lambda id: ledger.reschedule(
                id,
                run_at_ms=run_at_ms,
                priority=priority,
                actor=who,
                reason=reason,
                now_ms=options.logical_or_none(now_ms),
            ),
            verb="reschedule",
            fits="queued",
        )
    report(done, "reschedule", as_json=as_json)


@app.command()
def resolve(
    ids: SomeIds = None,
    applied: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="The effect was applied: this object is what it did, for the receipt."
        ),
    ] = None,
    adopt_receipt: Annotated[
        bool,
        typer.Option("--adopt-receipt", help="The effect was applied: the receipt that is there says so."),
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="The effect was not applied: try the job again.")
    ] = False,
    fail: Annotated[bool, typer.Option("--fail", help="Give the job up: it is dead.")] = False,
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
    """Decide held jobs: nobody but a person can know whether their effects were applied.

    By ids, or all of one queue that fit the filters: then look with --dry-run first.

    Example: fencepost jobs resolve order-17 --applied '{"charge": "ch_1"}' --reason "seen at the bank"

    Example: fencepost jobs resolve --queue payments --error "rate limited" --retry --dry-run
    """
    chosen = [applied is not None, adopt_receipt, retry, fail]
    if sum(chosen) != 1:
        raise InvalidInput(
            "say what became of it with exactly one of --applied JSON, --adopt-receipt, --retry and --fail"
        )
    decision: Decision = "retry" if retry else "fail" if fail else "applied"
    outcome = None if applied is None else _outcome(applied)
    filters = selection.Filters(queue, effect, error, older_than, newer_than, min_attempts, max_attempts)
    who = actor_or_user(actor)
    with open_existing(store, config, now_ms) as ledger:
        move_chosen(
            ledger,
            lambda id: ledger.resolve(
                id,
                decision=decision,
                outcome=outcome,
                actor=who,
                reason=reason,
                now_ms=options.logical_or_none(now_ms),
            ),
            ids or [],
            filters,
            state=HELD,
            now_ms=instant(ledger, now_ms),
            verb="resolve",
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )


def _outcome(text: str) -> dict[str, Any]:
    try:
        return check_outcome(parse(text.encode("utf-8", "surrogateescape"), what="--applied"))
    except InvalidInput as error:
        example = '--applied \'{"charge": "ch_1"}\''
        raise type(error)(f"{error}; say what the effect did, for example {example}") from error
