"""``fencepost queues``: show the queues; pause one, resume it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Optional

import typer

from ..errors import InvalidInput
from ..model.inputs import check_name
from ..model.queue_counts import QueueCounts, per_minute, with_paused
from .ui import complete, options
from .ui.output import print_document, wants_json, warn
from .ui.store import actor_or_user, instant, open_existing

DEFAULT_WINDOW_MS: Final = 300_000

app = typer.Typer(
    name="queues",
    rich_markup_mode=None,
    invoke_without_command=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.queues, help="The queue.")]


@app.callback()
def queues(
    context: typer.Context,
    store: options.Store = None,
    window_ms: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option(
            "--window",
            metavar="SPAN",
            parser=options.span_ms,
            help="Compute the rates over this long, up to now. [default: 5m]",
        ),
    ] = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Show each queue: its jobs by state, the age of its oldest ready job, and how many finish a minute.

    Pause and resume have their own help: fencepost queues pause -h.

    Example: fencepost queues --store jobs.db --window 15m
    """
    if context.invoked_subcommand is not None:
        return

    window_ms = DEFAULT_WINDOW_MS if window_ms is None else window_ms
    if window_ms == 0:
        raise InvalidInput("--window must be longer than 0")
    with open_existing(store, config, now_ms) as ledger:
        at_ms = instant(ledger, now_ms)
        counts = ledger.queue_counts(since_ms=max(0, at_ms - window_ms), now_ms=at_ms)
        paused = ledger.paused() if ledger.capabilities.has_schedules else []

    counts = with_paused(counts, paused)
    if wants_json(as_json):
        documents = [document(queue, at_ms, window_ms, paused=queue.queue in paused) for queue in counts]
        print_document({"schema_version": 1, "window_ms": window_ms, "queues": documents})
        return
    from .ui.render import draw_queues  # rich is slow to load, and only a terminal needs it

    draw_queues(counts, at_ms, window_ms, paused=paused)


@app.command()
def pause(
    name: Name,
    store: options.Store = None,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Stop workers from claiming jobs of the queue until it is resumed; running jobs finish.

    Example: fencepost queues pause mail --store jobs.db --reason "the provider is down"
    """
    _switch(name, store, actor, reason, config, paused=True, as_json=as_json, now_ms=now_ms)


@app.command()
def resume(
    name: Name,
    store: options.Store = None,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Let workers claim jobs of the queue again.

    Example: fencepost queues resume mail --store jobs.db
    """
    _switch(name, store, actor, reason, config, paused=False, as_json=as_json, now_ms=now_ms)


def document(queue: QueueCounts, now_ms: int, window_ms: int, *, paused: bool) -> dict[str, Any]:
    """Make the document of one queue."""
    oldest_ms = queue.oldest_ready_ms
    return {
        "queue": queue.queue,
        "paused": paused,
        "counts": queue.by_state,
        "ready": queue.ready,
        "delayed": queue.delayed,
        "oldest_ready_at_ms": oldest_ms,
        "oldest_ready_age_ms": None if oldest_ms is None else now_ms - oldest_ms,
        "completed_per_minute": per_minute(queue.completed_since, window_ms),
        "died_per_minute": per_minute(queue.died_since, window_ms),
    }


def _switch(
    name: str,
    store: str | None,
    actor: str | None,
    reason: str | None,
    config: str | None,
    *,
    paused: bool,
    as_json: bool,
    now_ms: int,
) -> None:
    check_name(name, "queue")
    who = actor_or_user(actor)
    with open_existing(store, config, now_ms) as ledger:
        switch = ledger.pause if paused else ledger.resume
        changed = switch(name, actor=who, reason=reason, now_ms=options.logical_or_none(now_ms))
        unknown = changed and paused and not any(ledger.counts(queue=name).values())
    if unknown:
        warn(f"the queue {name!r} has no jobs yet; is that its name?")
    if wants_json(as_json):
        print_document({"schema_version": 1, "queue": name, "paused": paused, "changed": changed})
    else:
        state = "paused" if paused else "not paused"
        print(f"the queue {name} {'is' if changed else 'was already'} {state}")
