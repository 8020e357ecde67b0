"""``fencepost schedule``: jobs that are enqueued again and again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from ..config import load
from ..errors import FencepostError, InvalidInput, Unsupported
from ..ledgers.open import capabilities_of, open_ledger
from ..model.clock import logical, wall_ms
from ..model.durations import relative
from ..model.inputs import MAX_TEXT_BYTES, check_schedule_name, text_sha256
from ..model.job import DEFAULT_EFFECT, DEFAULT_QUEUE, Stamps
from ..model.records import Schedule
from ..model.schedules import check_schedule
from .enqueue.template import stamps_for
from .ui import options
from .ui.files import open_input
from .ui.output import documents_only, print_document, wants_json
from .ui.store import instant, open_existing, store_name

app = typer.Typer(
    name="schedule",
    help="Enqueue a job again and again: add a schedule, list them, remove one, fire what is due.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule: at most 50 of a-z, 0-9 and -.")]


@app.command()
def add(
    name: Name,
    every: Annotated[str, typer.Option(metavar="SPAN", help="How often: 30s, 15m, 2h, 1d.")],
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The text of each job.")] = None,
    text_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The text, from a file; - is stdin.")
    ] = None,
    store: options.Store = None,
    queue: Annotated[str, typer.Option(metavar="NAME", help="The queue of each job.")] = DEFAULT_QUEUE,
    effect: Annotated[str, typer.Option(metavar="NAME", help="The effect of each job.")] = DEFAULT_EFFECT,
    priority: Annotated[int, typer.Option(metavar="N", help="Larger goes first.")] = 0,
    expires_in: Annotated[
        float | None,
        typer.Option(
            metavar="SPAN",
            parser=options.span_s,
            help="Bury a job that is not completed this long after its time.",
        ),
    ] = None,
    visibility_timeout: options.VisibilityTimeout = None,
    max_attempts: options.MaxAttempts = None,
    backoff_base: options.BackoffBase = None,
    dead_letter_retention: options.DeadLetterRetention = None,
    as_json: options.Json = False,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Add a schedule, or replace the one of that name; the first job comes one span from now.

    A replaced schedule keeps its times while --every is the same. Workers that run with --follow fire schedules.

    Example: fencepost schedule add nightly --every 1d --text sales --queue reports --store jobs.db
    """
    # Only this command needs plugins, and pluggy is slow to load.
    from .composition import Effects

    configured = load(config)
    schedule = check_schedule(
        Schedule(
            name=name,
            every=every if every.startswith("@") else f"@every {every}",
            text=_text(text, text_file),
            queue=queue,
            effect=effect,
            priority=priority,
            expires_s=expires_in,
            stamps=stamps_for(
                configured,
                queue,
                Stamps(visibility_timeout, max_attempts, backoff_base, dead_letter_retention),
            ),
        )
    )
    store = store_name(store, configured)
    with (
        documents_only(),
        Effects(configured, settings=set_, modules=plugin, blocked=no_plugin, wanted=[effect]) as effects,
    ):
        effects.text_check(effect)(schedule.text)
    _refuse_without(store)
    logical_ms = options.logical_or_none(now_ms)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with open_ledger(store, clock=clock) as ledger:
        ledger.register_schedule(schedule, now_ms=logical_ms)
        stored = next(one for one in ledger.schedules() if one.name == name)
        at_ms = ledger.now_ms() if logical_ms is None else logical_ms
    _say(f"{name}: the next job comes", stored, at_ms, as_json=as_json)


@app.command("list")
def list_schedules(
    store: options.Store = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """List the schedules, and when each fires next.

    Example: fencepost schedule list --store jobs.db
    """
    with open_existing(store, config, now_ms) as ledger:
        _refuse_without(ledger.location)
        schedules, at_ms = ledger.schedules(), instant(ledger, now_ms)
    if wants_json(as_json):
        print_document({"schema_version": 1, "schedules": [_document(schedule) for schedule in schedules]})
        return
    from .ui.render import draw_schedules  # rich is slow to load, and only a terminal needs it

    draw_schedules(schedules, at_ms)


@app.command()
def remove(
    name: Name,
    store: options.Store = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Remove a schedule; jobs that it has enqueued stay.

    Example: fencepost schedule remove nightly --store jobs.db
    """
    check_schedule_name(name)
    with open_existing(store, config, now_ms) as ledger:
        if not ledger.unregister_schedule(name):
            raise InvalidInput(
                f"{ledger.location}: there is no schedule {name!r}; see: fencepost schedule list"
            )
    if wants_json(as_json):
        print_document({"schema_version": 1, "removed": name})
    else:
        print(f"removed the schedule {name}")


@app.command("run")
def run_due(
    store: options.Store = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Fire what is due now, once, without a worker: for a ledger whose workers run with --no-schedules.

    Example: fencepost schedule run --store jobs.db
    """
    with open_existing(store, config, now_ms) as ledger:
        _refuse_without(ledger.location)
        fires = ledger.tick(now_ms=options.logical_or_none(now_ms))
    if faults := [fire for fire in fires if fire.error is not None]:
        said = "; ".join(f"the schedule {fire.schedule!r} cannot fire: {fire.error}" for fire in faults)
        raise FencepostError(f"{said}; {len(fires) - len(faults)} jobs of the others were enqueued")
    if wants_json(as_json):
        print_document({"schema_version": 1, "fired": [fire._asdict() for fire in fires]})
        return
    for fire in fires:
        print(f"{fire.id}" + ("" if fire.created else ": was there already"))
    if not fires:
        print("nothing is due")


def _text(text: str | None, text_file: str | None) -> str:
    if (text is None) == (text_file is None):
        raise InvalidInput("say what each job's text is, with either --text or --text-file")
    if text is not None:
        return text
    assert text_file is not None, "one of the two is given"
    with open_input(text_file) as stream:
        data = stream.read(MAX_TEXT_BYTES + 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"--text-file {text_file}: not UTF-8 at byte {error.start}") from error


def _refuse_without(store: str) -> None:
    if not capabilities_of(store).has_schedules:
        raise Unsupported(f"{store}: schedules need an SQL ledger (--store jobs.db, or postgresql://…)")


def _say(words: str, schedule: Schedule, now_ms: int, *, as_json: bool) -> None:
    if wants_json(as_json):
        print_document({"schema_version": 1, "schedule": _document(schedule)})
    else:
        print(f"{words} {relative(schedule.next_ms or 0, now_ms)}")


def _document(schedule: Schedule) -> dict[str, Any]:
    shown = asdict(schedule)
    text = shown.pop("text")
    return shown | {"text_bytes": len(text.encode("utf-8")), "text_sha256": text_sha256(text)}
