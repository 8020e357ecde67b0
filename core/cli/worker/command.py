"""``fencepost worker``: claim, apply, complete; for a number of jobs, or until it is stopped."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated, Optional, TextIO

import typer

from ...config import load
from ...errors import InvalidInput
from ...ledgers.crash import EXIT_CODE
from ...ledgers.open import open_ledger
from ...model.clock import logical, wall_ms
from ...model.inputs import check_seconds
from ...model.job import Job
from ...model.policy import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS
from ...worker.dispatch import CrashHook
from ...worker.options import WorkerOptions
from ..composition import Effects
from ..ui import options
from ..ui.output import documents_only, print_document
from .process import default_claimant, run_worker


class CrashAfter(StrEnum):
    """Where a worker can be told to die."""

    claim = "claim"
    effect = "effect"


class LogFormat(StrEnum):
    """How log lines on stderr look."""

    text = "text"
    json = "json"


def worker(
    store: options.Store = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until stopped.")] = False,
    effect: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Serve only this effect. Repeatable. [default: all installed]"),
    ] = None,
    queue: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Serve only this queue; several take turns. Repeatable."),
    ] = None,
    max_jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N",
            min=1,
            max=10_000,
            help="Make at most so many attempts; not with --follow. [default: 1]",
        ),
    ] = None,
    lease_ms: Annotated[
        int, typer.Option(metavar="N", min=1, help="How long a claim lasts without a heartbeat.")
    ] = DEFAULT_LEASE_MS,
    max_attempts: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Bury a job after so many attempts, if it has no limit of its own. A low limit buries jobs that "
            "other workers would have tried again: better stamp the jobs (enqueue --max-attempts).",
        ),
    ] = DEFAULT_MAX_ATTEMPTS,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000, help="Attempts at once, in threads.")
    ] = 1,
    timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SECONDS",
            help="Give an attempt up after so long: its effect is told, its lease lapses; a thread cannot be "
            "killed, so its slot stays taken until it returns.",
        ),
    ] = None,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long running attempts may finish at a stop.")
    ] = 30.0,
    idle_exit: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="SECONDS", help="Stop after so long without a job; with --follow."),
    ] = None,
    claimant: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="WHO", help="A name for people to read. [default: host:pid:start]"),
    ] = None,
    no_schedules: Annotated[bool, typer.Option("--no-schedules", help="Do not fire schedules.")] = False,
    delay_ms: Annotated[
        int, typer.Option(metavar="N", min=0, max=60_000, help="Stall after each claim, without heartbeats.")
    ] = 0,
    crash_after: Annotated[
        Optional[CrashAfter],  # noqa: UP045
        typer.Option(help="Die there, with exit status 86, for showing recovery."),
    ] = None,
    now_ms: options.NowMs = -1,
    health_file: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FILE", help="Touched whenever the worker really gets on."),
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="Log lines on stderr.")] = LogFormat.text,
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
        lease_ms=lease_ms,
        max_attempts=max_attempts,
        max_jobs=None if follow else (max_jobs or 1),
        concurrency=concurrency,
        queues=tuple(queue) if queue else None,
        timeout_s=check_seconds(timeout, "--timeout"),
        idle_exit_s=check_seconds(idle_exit, "--idle-exit"),
        grace_s=check_seconds(grace, "--grace"),
        delay_ms=delay_ms,
        now_ms=logical_ms,
        schedules=not no_schedules,
    )
    configured = load(config)
    clock = wall_ms if logical_ms is None else logical(logical_ms)
    with (
        documents_only() as out,
        Effects(configured, settings=set_, modules=plugin, blocked=no_plugin, wanted=effect) as effects,
    ):
        chosen = {name: effects.choose(name) for name in effect} if effect else effects.choose_all()
        with open_ledger(configured.store if store is None else store, clock=clock) as ledger:
            run_worker(
                ledger,
                chosen,
                worker_options,
                observers=effects.plugins.observers,
                crash=None if crash_after is None else _crash_at(crash_after, out),
                health_file=health_file,
                log_format=log_format.value,
                clock_name="logical" if logical_ms is not None else "ledger",
                out=out,
            )


def _crash_at(point: CrashAfter, out: TextIO) -> CrashHook:
    def crash(reached: str, job: Job) -> None:
        if reached == point:
            print_document({"crash_after": point.value, "id": job.id, "version": job.version}, out)
            os._exit(EXIT_CODE)

    return crash
