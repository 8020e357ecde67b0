"""The commands of ``fencepost schedule``: add one, list them, remove one, pause it, let it go on, fire."""

from __future__ import annotations

from typing import Annotated

import typer

from ...config import load
from ...errors import FencepostError, InvalidInput
from ...ledgers.open import open_ledger
from ...ledgers.protocol import Ledger
from ...model.clock import logical, wall_ms
from ...model.inputs import MAX_TEXT_BYTES, check_schedule_name
from ...model.job import DEFAULT_EFFECT, DEFAULT_QUEUE, Stamps
from ...model.policy import with_defaults
from ...model.records import Fire, Schedule
from ...model.schedules import MISSED, OVERLAP, check_schedule
from ...model.timetable import spec_of
from ...model.zones import UTC
from ...stores import store_name
from ..ui import complete, options
from ..ui.files import open_input
from ..ui.output import documents_only, print_document, wants_json, warn
from ..ui.store import actor_or_user, instant, open_existing
from .apply import apply
from .output import document, report_fires, report_next
from .preview import preview

app = typer.Typer(
    name="schedule",
    help="Enqueue a job again and again, at equal distances or by the calendar of a time zone.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=complete.schedules, help="The schedule: at most 50 of a-z, 0-9 and -."
    ),
]


@app.command()
def add(
    name: Name,
    every: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="A span (30s, 15m, 2h, 1d); five cron fields in quotes ('0 9 * * mon-fri'); or @hourly, @daily, "
            "@weekly, @monthly, @yearly.",
        ),
    ],
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The text of each job.")] = None,
    text_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="The text, from a file; - is stdin.")
    ] = None,
    zone: Annotated[
        str, typer.Option("--zone", metavar="ZONE", help="The IANA time zone of the cron fields.")
    ] = UTC,
    missed: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(MISSED),
            help="Which of the times that passed while no worker ran are made up for. [default: all of a span (64 at "
            "most), the latest of cron fields]",
        ),
    ] = None,
    overlap: Annotated[
        str,
        typer.Option(
            metavar="|".join(OVERLAP),
            help="skip: fire nothing while the job that was fired last is unfinished.",
        ),
    ] = "allow",
    store: options.Store = None,
    queue: Annotated[
        str, typer.Option(metavar="NAME", autocompletion=complete.queues, help="The queue of each job.")
    ] = DEFAULT_QUEUE,
    effect: Annotated[
        str, typer.Option(metavar="NAME", autocompletion=complete.effects, help="The effect of each job.")
    ] = DEFAULT_EFFECT,
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
    """Add a schedule, or replace the one of that name. Of a span the first job comes one span from now.

    A replaced schedule keeps its times while --every and --zone are the same. Workers that run with --follow fire
    schedules.

    Example: fencepost schedule add morning --every '0 9 * * mon-fri' --zone Europe/Berlin --text sales
    """
    # Only this command needs plugins, and pluggy is slow to load.
    from ...composition import Effects

    configured = load(config)
    schedule = check_schedule(
        Schedule(
            name=name,
            every=spec_of(every),
            text=_text(text, text_file),
            queue=queue,
            effect=effect,
            priority=priority,
            expires_s=expires_in,
            stamps=with_defaults(
                Stamps(visibility_timeout, max_attempts, backoff_base, dead_letter_retention),
                configured.stamps_of(queue),
            ),
            zone=zone,
            missed=missed,
            overlap=overlap,
        )
    )
    store = store_name(store, configured)
    with (
        documents_only(),
        Effects(
            configured, warn=warn, settings=set_, modules=plugin, blocked=no_plugin, wanted=[effect]
        ) as effects,
    ):
        effects.text_check(effect)(schedule.text)
    logical_ms = options.logical_or_none(now_ms)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with open_ledger(store, clock=clock) as ledger:
        ledger.register_schedule(schedule, now_ms=logical_ms)
        stored = next(one for one in ledger.schedules() if one.name == name)
        at_ms = ledger.now_ms() if logical_ms is None else logical_ms
    report_next(f"{name}: the next job comes", stored, at_ms, as_json=as_json)


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
        schedules, at_ms = ledger.schedules(), instant(ledger, now_ms)
    if wants_json(as_json):
        print_document({"schema_version": 1, "schedules": [document(schedule) for schedule in schedules]})
        return
    from ..ui.render import draw_schedules  # rich is slow to load, and only a terminal needs it

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
            raise _unknown(ledger, name)
    if wants_json(as_json):
        print_document({"schema_version": 1, "removed": name})
    else:
        print(f"removed the schedule {name}")


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
    """Let a schedule fire no more until it is resumed; jobs that it has enqueued go on.

    Example: fencepost schedule pause nightly --reason "the books are closed" --store jobs.db
    """
    with open_existing(store, config, now_ms) as ledger:
        _find(ledger, name)
        done = ledger.pause_schedule(
            name, actor=actor_or_user(actor), reason=reason, now_ms=options.logical_or_none(now_ms)
        )
        schedule = _find(ledger, name)
    if wants_json(as_json):
        print_document({"schema_version": 1, "changed": done, "schedule": document(schedule)})
    else:
        print(f"{name}: paused" if done else f"{name}: was paused already")


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
    """Let a paused schedule go on, with its first time after now. Times that passed meanwhile are not made up for.

    Example: fencepost schedule resume nightly --store jobs.db
    """
    with open_existing(store, config, now_ms) as ledger:
        _find(ledger, name)
        done = ledger.resume_schedule(
            name, actor=actor_or_user(actor), reason=reason, now_ms=options.logical_or_none(now_ms)
        )
        schedule, at_ms = _find(ledger, name), instant(ledger, now_ms)
    if wants_json(as_json):
        print_document({"schema_version": 1, "changed": done, "schedule": document(schedule)})
    else:
        words = "the next job comes" if done else "was not paused; the next job comes"
        report_next(f"{name}: {words}", schedule, at_ms, as_json=as_json)


@app.command("run")
def run(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Fire this one now, due or not; its times stay as they are."),
    ] = None,
    store: options.Store = None,
    actor: options.Actor = None,
    reason: options.Reason = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Fire one schedule now, by its name; without a name fire what is due, as a worker would.

    Without a name it is for a ledger whose workers run with --no-schedules.

    Example: fencepost schedule run nightly --reason "the books were late" --store jobs.db
    """
    logical_ms = options.logical_or_none(now_ms)
    with open_existing(store, config, now_ms) as ledger:
        if name is None:
            fires = ledger.tick(now_ms=logical_ms)
        else:
            fire = ledger.run_schedule(name, actor=actor_or_user(actor), reason=reason, now_ms=logical_ms)
            if fire is None:
                raise _unknown(ledger, name)
            fires = [fire]
    _refuse_faults(fires)
    if name is not None and fires[0].unfinished is not None:
        raise InvalidInput(
            f"the schedule {name!r} was not fired: {fires[0].unfinished} is unfinished, and the schedule skips overlaps"
        )
    report_fires(fires, as_json=as_json)


app.command()(preview)
app.command()(apply)


def _refuse_faults(fires: list[Fire]) -> None:
    if faults := [fire for fire in fires if fire.error is not None]:
        said = "; ".join(f"the schedule {fire.schedule!r} cannot fire: {fire.error}" for fire in faults)
        enqueued = sum(fire.created for fire in fires)
        raise FencepostError(f"{said}; {enqueued} jobs of the others were enqueued")


def _find(ledger: Ledger, name: str) -> Schedule:
    check_schedule_name(name)
    found = next((one for one in ledger.schedules() if one.name == name), None)
    if found is None:
        raise _unknown(ledger, name)
    return found


def _unknown(ledger: Ledger, name: str) -> InvalidInput:
    return InvalidInput(f"{ledger.location}: there is no schedule {name!r}; see: fencepost schedule list")


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
