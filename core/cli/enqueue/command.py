"""``fencepost enqueue``: store the records of a file or of stdin as jobs."""

from __future__ import annotations

from itertools import chain
from typing import IO, Annotated, Optional

import typer

from ...composition import Effects
from ...config import load
from ...errors import InvalidInput, Unsupported
from ...ledgers.open import capabilities_of
from ...model.clock import wall_ms
from ...model.documents import MAX_DOCUMENT_BYTES
from ...model.durations import instant_ms
from ...model.inputs import parse_request
from ...model.job import DEFAULT_EFFECT, DEFAULT_QUEUE, Stamps
from ...producer import Producer
from ...stores import store_name
from ..ui import complete, options
from ..ui.files import input_name, open_input, size_of
from ..ui.output import documents_only, print_document, warn
from ..ui.progress import progress
from .formats import named_format
from .lines import SUFFIX, enqueue_lines, requests
from .template import Template


def enqueue(
    input: Annotated[
        str,
        typer.Option(
            "--input",
            metavar="FILE",
            help="A JSON array of {id, text}; or JSON Lines, in a file that ends in .jsonl; - is stdin.",
        ),
    ],
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", help="JSON Lines: one {id, text} a line, any number of them; SQL ledgers only."
        ),
    ] = False,
    store: options.Store = None,
    queue: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.queues,
            help="The queue, which workers can choose to serve.",
        ),
    ] = DEFAULT_QUEUE,
    effect: Annotated[
        str,
        typer.Option(
            metavar="NAME", autocompletion=complete.effects, help="The plugin effect that does the work."
        ),
    ] = DEFAULT_EFFECT,
    priority: Annotated[int, typer.Option(metavar="N", help="Jobs with a larger number go first.")] = 0,
    run_at: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="WHEN", help="Not before this: ISO 8601 (2026-12-31T06:00Z), or epoch ms."),
    ] = None,
    delay: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SPAN", parser=options.span_s, help="Not before this long from now; wins over --run-at."
        ),
    ] = None,
    expires_in: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SPAN", parser=options.span_s, help="Bury a job that is not completed this long from now."
        ),
    ] = None,
    visibility_timeout: options.VisibilityTimeout = None,
    max_attempts: options.MaxAttempts = None,
    backoff_base: options.BackoffBase = None,
    dead_letter_retention: options.DeadLetterRetention = None,
    now_ms: options.NowMs = -1,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
    config: options.Config = None,
) -> None:
    """Store jobs, durably; the same records again change nothing.

    A JSON array is stored whole or not at all. JSON Lines are stored a thousand at a time: where that ends midway,
    the same command again goes on from there. It prints how many lines were new, too. A repeated line counts as new
    once.

    Example: fencepost enqueue --store jobs.db --input jobs.json --queue mail --max-attempts 5
    """
    if expires_in == 0:
        raise InvalidInput("--expires-in is 0, it must be more than 0: such a job could never run")
    configured = load(config)
    template = Template(
        queue=queue,
        effect=effect,
        priority=priority,
        run_at_ms=None if run_at is None else instant_ms(run_at, "--run-at"),
        delay_s=delay,
        expires_in_s=expires_in,
        stamps=Stamps(visibility_timeout, max_attempts, backoff_base, dead_letter_retention),
    )
    store_all = _store_lines if lines or input.endswith(SUFFIX) else _store_document
    # A plugin may change the working folder: what the person named is opened, or made absolute, before any is loaded.
    store = store_name(store, configured)
    with open_input(input) as stream, documents_only() as out:
        with (
            Effects(
                configured, warn=warn, settings=set_, modules=plugin, blocked=no_plugin, wanted=[effect]
            ) as effects,
            Producer(store, configured, effects) as producer,
        ):
            if store_all is _store_lines and not capabilities_of(store).has_line_enqueue:
                raise Unsupported(
                    f"{store}: JSON Lines need an SQL ledger (--store jobs.db, or postgresql://…); a folder takes a "
                    "JSON array"
                )
            counts = store_all(
                stream,
                producer,
                template,
                what=input_name(input),
                now_ms=options.logical_or_none(now_ms),
            )
            location = producer.ledger.location
        print_document({**counts, "store": location}, out)


def _store_document(
    stream: IO[bytes], producer: Producer, template: Template, *, what: str, now_ms: int | None
) -> dict[str, int]:
    """Store one request. Everything is checked before the ledger is opened, so that a refused request makes none."""
    data = stream.read(MAX_DOCUMENT_BYTES + 1)
    with named_format(data, what=what, wanted="array"):
        inputs = parse_request(data, what=what)
    template.check(wall_ms() if now_ms is None else now_ms)
    drafts = [template.draft(item) for item in inputs]
    try:
        producer.check(drafts, now_ms=now_ms)
    except InvalidInput as error:
        raise type(error)(f"{what}: {error}") from error
    return {"enqueued_or_already_present": len(producer.enqueue_drafts(drafts, now_ms=now_ms))}


def _store_lines(
    stream: IO[bytes], producer: Producer, template: Template, *, what: str, now_ms: int | None
) -> dict[str, int]:
    """Store request after request. The first one is read and checked before the ledger is opened."""
    batches = requests(stream, what=what, check=lambda text: producer.check_text(template.effect, text))
    first = next(batches, None)
    if first is None:
        raise InvalidInput(f"{what}: holds no records")
    producer.check((template.draft(line.input) for line in first.lines), now_ms=now_ms)
    size = size_of(stream)
    with progress("enqueueing", total=size) as report_progress:
        done = enqueue_lines(
            producer,
            chain([first], batches),
            template,
            what=what,
            now_ms=now_ms,
            report=lambda count: report_progress(
                count if size is None else stream.tell(), f"{count:,} records"
            ),
        )
    return {
        "enqueued_or_already_present": done.records,
        "enqueued": done.new,
        "already_present": done.records - done.new,
    }
