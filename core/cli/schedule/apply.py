"""``fencepost schedule apply``: make the ledger's schedules those of the configuration file."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ...config import Config, load
from ...errors import InvalidInput
from ...ledgers.open import open_ledger
from ...model.clock import logical, wall_ms
from ...model.policy import with_defaults
from ...model.records import Applied, Schedule
from ...stores import store_name
from ..ui import options
from ..ui.output import documents_only, print_document, wants_json, warn
from ..ui.store import actor_or_user


def apply(
    store: options.Store = None,
    dry_run: options.DryRun = False,
    owner: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whose schedules these are. Programs that share a ledger need a name each.",
        ),
    ] = "config",
    actor: options.Actor = None,
    as_json: options.Json = False,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Make the schedules of this owner those of [schedules.NAME] in fencepost.toml, and no others: in one step.

    What is new is added, what is other is changed, what is gone is removed. Schedules that were added by hand stay,
    and so do those of other owners. A schedule keeps its times while its every and zone are the same, and its pause.

    Example: fencepost schedule apply --dry-run --store jobs.db
    """
    # Only the commands that store texts need plugins, and pluggy is slow to load.
    from ...composition import Effects

    configured = load(config)
    if configured.path is None:
        raise InvalidInput(
            "there is no fencepost.toml here: name the file that has the schedules with --config, or write one with "
            "[schedules.NAME]"
        )
    schedules = _schedules(configured)
    wanted = sorted({schedule.effect for schedule in schedules})
    with (
        documents_only(),
        Effects(
            configured, warn=warn, settings=set_, modules=plugin, blocked=no_plugin, wanted=wanted
        ) as effects,
    ):
        checks = {effect: effects.text_check(effect) for effect in wanted}
        for schedule in schedules:
            checks[schedule.effect](schedule.text)
    logical_ms = options.logical_or_none(now_ms)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with open_ledger(store_name(store, configured), clock=clock) as ledger:
        done = ledger.apply_schedules(
            schedules, owner=owner, actor=actor_or_user(actor), dry_run=dry_run, now_ms=logical_ms
        )
    _report(done, dry_run=dry_run, as_json=as_json)


def _schedules(configured: Config) -> list[Schedule]:
    return [
        replace(schedule, stamps=with_defaults(schedule.stamps, configured.stamps_of(schedule.queue)))
        for schedule in configured.schedules.values()
    ]


def _report(done: Applied, *, dry_run: bool, as_json: bool) -> None:
    if wants_json(as_json):
        print_document({"schema_version": 1, "dry_run": dry_run} | done._asdict())
        return
    signs = (("+", done.added, "added"), ("~", done.changed, "changed"), ("-", done.removed, "removed"))
    for sign, names, _ in signs:
        for name in names:
            print(f"{sign} {name}")
    counts = ", ".join(f"{len(names)} {word}" for _, names, word in signs)
    print(f"{'would be: ' if dry_run else ''}{counts}, {len(done.unchanged)} unchanged")
