"""``fencepost worker``: claim, apply, complete; for a number of jobs, or until it is stopped."""

from __future__ import annotations

import os
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Optional, TextIO

import typer

from ...composition import Effects
from ...config import load
from ...errors import InvalidInput
from ...ledgers.crash import EXIT_CODE
from ...ledgers.open import open_ledger
from ...ledgers.protocol import Ledger
from ...model.checks import MAX_SPAN_MS
from ...model.clock import logical, wall_ms
from ...model.durations import words
from ...model.job import QUEUED, Job
from ...model.policy import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS
from ...model.query import JobQuery
from ...stores import store_name
from ...worker.options import DEFAULT_GRACE_S, MAX_DELAY_MS, WorkerOptions
from ...worker.settle import CrashHook
from ..ui import complete, options
from ..ui.output import documents_only, print_document, warn
from .logs import set_up_logs
from .process import default_claimant, run_worker
from .signals import Guard, Signals, ending_in_time


class CrashAfter(StrEnum):
    """The points at which a worker can be told to die."""

    claim = "claim"
    effect = "effect"


class LogFormat(StrEnum):
    """The formats of log lines on stderr."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """The least severe log records that are shown."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def worker(
    store: options.Store = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until stopped.")] = False,
    effect: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="NAME",
            autocompletion=complete.effects,
            help="Serve only this effect. Repeatable. [default: all installed]",
        ),
    ] = None,
    queue: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="NAME",
            autocompletion=complete.queues,
            help="Serve only this queue; several take turns. Repeatable.",
        ),
    ] = None,
    max_jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N",
            min=1,
            max=10_000,
            help="Make at most this many attempts; not with --follow. [default: 1]",
        ),
    ] = None,
    lease: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="SPAN",
            parser=options.span_ms,
            help="How long a claim lasts without a heartbeat. [default: 30s]",
        ),
    ] = None,
    lease_ms: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", min=1, help="The same as --lease, in milliseconds."),
    ] = None,
    max_attempts: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Bury a job after this many attempts, if it has no limit of its own. A low limit buries jobs that "
            "other workers would try again: it is better to stamp the jobs (enqueue --max-attempts).",
        ),
    ] = DEFAULT_MAX_ATTEMPTS,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000, help="Attempts at once, in threads.")
    ] = 1,
    timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SPAN",
            parser=options.span_s,
            help="Give an attempt up after this long: its effect is notified, and its lease lapses. A thread cannot be "
            "killed, so its slot stays taken until it returns.",
        ),
    ] = None,
    grace: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SPAN",
            parser=options.span_s,
            help="How long running attempts have to finish at a stop. [default: 30s]",
        ),
    ] = None,
    idle_exit: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SPAN", parser=options.span_s, help="Stop after this long without a job; with --follow."
        ),
    ] = None,
    claimant: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="WHO", help="A name for people to read. [default: host:pid:start]"),
    ] = None,
    no_schedules: Annotated[bool, typer.Option("--no-schedules", help="Do not fire schedules.")] = False,
    delay: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="SPAN",
            parser=options.span_ms,
            help="Stall this long after each claim, without heartbeats, to show a stale worker; at most 1m.",
        ),
    ] = None,
    delay_ms: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", min=0, max=MAX_DELAY_MS, help="The same as --delay, in milliseconds."),
    ] = None,
    crash_after: Annotated[
        Optional[CrashAfter],  # noqa: UP045
        typer.Option(help="Die there, with exit status 86, to show the recovery."),
    ] = None,
    now_ms: options.NowMs = -1,
    health_file: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="A file that is touched whenever the worker makes progress."),
    ] = None,
    log_format: Annotated[
        LogFormat,
        typer.Option(help="Log lines on stderr: everything that is logged in the process, effects included."),
    ] = LogFormat.text,
    log_level: Annotated[LogLevel, typer.Option(help="The least severe log lines to show.")] = LogLevel.info,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
    config: options.Config = None,
) -> None:
    """Work on jobs: claim one under a lease, apply its effect, store the receipt, complete it under the fence.

    Without --follow it makes up to --max-jobs attempts, stops when nothing is ready, and prints one document. With
    --follow it prints one event a line. SIGTERM and SIGINT stop it in order; a second one ends it at once.

    Example: fencepost worker --store jobs.db --follow --concurrency 8
    """
    if follow and crash_after is not None:
        raise InvalidInput("--crash-after is for bounded runs, not for --follow")
    if follow and max_jobs is not None:
        raise InvalidInput("--max-jobs is for bounded runs, not for --follow")
    if idle_exit is not None and not follow:
        raise InvalidInput("--idle-exit goes with --follow; a bounded worker stops when nothing is ready")
    logical_ms = options.logical_or_none(now_ms)
    worker_options = WorkerOptions(
        claimant=claimant or default_claimant(),
        lease_ms=_one_of("--lease", lease, lease_ms, default=DEFAULT_LEASE_MS, least=1),
        max_attempts=max_attempts,
        max_jobs=None if follow else (max_jobs or 1),
        concurrency=concurrency,
        queues=tuple(queue) if queue else None,
        timeout_s=timeout,
        idle_exit_s=idle_exit,
        grace_s=DEFAULT_GRACE_S if grace is None else grace,
        delay_ms=_one_of("--delay", delay, delay_ms, default=0, most=MAX_DELAY_MS),
        now_ms=logical_ms,
        schedules=not no_schedules,
    )
    guard = Guard()
    guard.start()
    signals = Signals(guard, grace_s=worker_options.grace_s)
    signals.install()  # as process 1 the kernel drops what has no handler, and a plugin may take long to load
    set_up_logs(log_format.value, level=log_level.value)
    configured = load(config)
    # A plugin may change the working folder: what the person named is made absolute before any is loaded.
    store = store_name(store, configured)
    health_file = None if health_file is None else os.path.abspath(health_file)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with (
        documents_only() as out,
        ending_in_time(guard) as run_is_over,
        Effects(
            configured, warn=warn, settings=set_, modules=plugin, blocked=no_plugin, wanted=effect
        ) as effects,
    ):
        chosen = {name: effects.choose(name) for name in effect} if effect else effects.choose_all()
        with open_ledger(store, clock=clock) as ledger:
            if not effect:
                _warn_of_waiting(ledger, effects, chosen)
            try:
                run_worker(
                    ledger,
                    chosen,
                    worker_options,
                    observers=effects.plugins.observers,
                    crash=None if crash_after is None else _crash_at(crash_after, out),
                    health_file=health_file,
                    clock_name="logical" if logical_ms is not None else "ledger",
                    signals=signals,
                    out=out,
                )
            finally:
                run_is_over()


def _warn_of_waiting(ledger: Ledger, effects: Effects, served: Collection[str]) -> None:
    """Warn where jobs wait for an effect that ships with Fencepost and lacks settings here."""
    for name in effects.plugins.effect_names():
        if name in served or not effects.plugins.ships(name):
            continue
        reason = effects.lacks_settings(name)
        if reason and ledger.jobs(JobQuery(states=[QUEUED], effect=name, limit=1)).jobs:
            warn(f"jobs wait for the effect {name!r}, which is left out: {reason}")


def _one_of(
    name: str,
    span_ms: int | None,
    in_ms: int | None,
    *,
    default: int,
    least: int = 0,
    most: int = MAX_SPAN_MS,
) -> int:
    """Return what was given, as a span or by the alias that takes milliseconds."""
    if span_ms is not None and in_ms is not None:
        raise InvalidInput(f"give either {name} or {name}-ms: they mean the same")
    value_ms = in_ms if span_ms is None else span_ms
    if value_ms is None:
        return default
    if not least <= value_ms <= most:
        raise InvalidInput(f"{name} must be from {least} ms to {words(most)}")
    return value_ms


def _crash_at(point: CrashAfter, out: TextIO) -> CrashHook:
    def crash(reached: str, job: Job) -> None:
        if reached == point:
            print_document({"crash_after": point.value, "id": job.id, "version": job.version}, out)
            os._exit(EXIT_CODE)

    return crash
