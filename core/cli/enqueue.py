"""``fencepost enqueue``: a document of records becomes jobs, all of them or none."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from ..job import DEFAULT_EFFECT, DEFAULT_QUEUE
from . import options


def enqueue(
    input: Annotated[
        str, typer.Option("--input", metavar="FILE", help="A JSON array of {id, text}; - is stdin.")
    ],
    store: options.Store = None,
    queue: Annotated[str, typer.Option(help="The lane that workers can choose.")] = DEFAULT_QUEUE,
    effect: Annotated[str, typer.Option(help="The plugin effect that does the work.")] = DEFAULT_EFFECT,
    priority: Annotated[int, typer.Option(help="Larger goes first.")] = 0,
    run_at: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="WHEN", help="Not before this: ISO 8601 (2026-12-31T06:00Z), or epoch ms."),
    ] = None,
    delay: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="SECONDS", help="Not before so long from now; wins over --run-at."),
    ] = None,
    expires_in: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="SECONDS", help="Bury what is not completed so long from now."),
    ] = None,
    visibility_timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="SECONDS", help="Stamp: the lease of each claim."),
    ] = None,
    max_attempts: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Stamp: the limit of attempts, whatever a worker's is."),
    ] = None,
    backoff_base: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SECONDS", help="Stamp: the backoff after the first failure; doubles each time."
        ),
    ] = None,
    dead_letter_retention: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="SECONDS", help="Stamp: how long the job is kept once it is dead."),
    ] = None,
    now_ms: options.NowMs = -1,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
    config: options.Config = None,
) -> None:
    """Store jobs, durably; the same records again change nothing.

    Example: fencepost enqueue --store jobs.db --input jobs.json --queue mail --max-attempts 5
    """
    from .. import policy
    from ..clock import wall_ms
    from ..config import load
    from ..errors import EffectNotFound, PluginError
    from ..inputs import NewJob, check_request, check_seconds, parse_request
    from ..job import Stamps
    from ..stores import open_ledger
    from .compose import Effects
    from .output import print_document, warn

    configured = load(config)
    inputs = parse_request(_read(input), what=input if input != "-" else "stdin")
    stamps = policy.with_defaults(
        Stamps(visibility_timeout, max_attempts, backoff_base, dead_letter_retention),
        configured.stamps_of(queue),
    )
    delay_s, expires_in_s = check_seconds(delay, "--delay"), check_seconds(expires_in, "--expires-in")
    run_at_ms = None if run_at is None else _instant_ms(run_at)

    def jobs(clock_ms: int) -> list[NewJob]:
        return check_request(
            NewJob(
                item.id,
                item.text,
                queue=queue,
                effect=effect,
                priority=priority,
                run_at_ms=policy.run_at(clock_ms, delay_s=delay_s, run_at_ms=run_at_ms),
                expires_at_ms=policy.expires_at(clock_ms, expires_in_s=expires_in_s),
                stamps=stamps,
            )
            for item in inputs
        )

    logical_ms = options.logical_or_none(now_ms)
    # Everything is checked before the store is opened: a refused request makes none.
    request = jobs(wall_ms() if logical_ms is None else logical_ms)
    effects = Effects(configured, settings=set_, modules=plugin, blocked=no_plugin, wanted=[effect])
    try:
        chosen = effects.choose(effect)
    except EffectNotFound:
        warn(f"no effect {effect!r} is installed here; the jobs wait for a worker that has it")
    except PluginError as error:
        warn(f"the texts are not checked by the effect {effect!r}: {error}")
    else:
        for item in inputs:
            chosen.validate(item.text)
    with open_ledger(store or configured.store) as ledger:
        if logical_ms is None and (delay_s is not None or expires_in_s is not None):
            # What is relative counts from the ledger's clock, which for PostgreSQL is not this machine's.
            request = jobs(ledger.now_ms())
        stored = ledger.enqueue(request, now_ms=logical_ms)
        for job, answer in zip(request, stored, strict=True):
            effects.plugins.observers.job_enqueued(job, answer.created)
        effects.plugins.close()
        print_document({"enqueued_or_already_present": len(stored), "store": ledger.location})


def _read(name: str) -> bytes:
    import sys

    from ..documents import MAX_DOCUMENT_BYTES
    from ..errors import InvalidInput

    if name == "-":
        return sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    try:
        with open(name, "rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror or error}") from error


def _instant_ms(text: str) -> int:
    from datetime import datetime

    from ..errors import InvalidInput

    if text.isascii() and text.isdigit():
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"--run-at {text!r}: neither ISO 8601 nor milliseconds since the epoch") from error
    if when.tzinfo is None:
        raise InvalidInput(f"--run-at {text!r}: name the time zone, for example {text}Z")
    return round(when.timestamp() * 1_000)
