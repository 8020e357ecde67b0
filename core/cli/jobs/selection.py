"""Filters of jobs, and the page that they choose: shared by ``jobs`` and ``dead``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

import typer

from ...errors import Unsupported
from ...ledgers.protocol import Ledger
from ...model.fields import whole
from ...model.inputs import check_name
from ...model.job import DEAD, Job, State
from ...model.query import JobQuery
from ...model.records import Page
from ..ui import complete, options
from ..ui.output import print_document, wants_json

MAX_SHOWN: Final = 10_000
CHUNK: Final = 1_000

Queue = Annotated[
    str | None,
    typer.Option("--queue", metavar="NAME", autocompletion=complete.queues, help="Only of this queue."),
]
Effect = Annotated[
    str | None,
    typer.Option("--effect", metavar="NAME", autocompletion=complete.effects, help="Only of this effect."),
]
ErrorText = Annotated[
    str | None,
    typer.Option("--error", metavar="TEXT", help="Only where the last error contains this text."),
]
OlderThan = Annotated[
    int | None,
    typer.Option(
        "--older-than",
        metavar="SPAN",
        parser=options.span_ms,
        help="Only those enqueued (dead ones: died) longer ago than this, for example 15m.",
    ),
]
NewerThan = Annotated[
    int | None,
    typer.Option(
        "--newer-than",
        metavar="SPAN",
        parser=options.span_ms,
        help="Only those enqueued (dead ones: died) within this long, up to now.",
    ),
]
MinAttempts = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Only with this many attempts or more.")
]
MaxAttempts = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Only with this many attempts or fewer.")
]
After = Annotated[
    str | None, typer.Option(metavar="CURSOR", help="Go on after the previous page: its `next`.")
]
Limit = Annotated[int, typer.Option(metavar="N", min=1, max=MAX_SHOWN, help="How many to show.")]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters that a person gave."""

    queue: str | None
    effect: str | None
    error: str | None
    older_than_ms: int | None
    newer_than_ms: int | None
    min_attempts: int | None
    max_attempts: int | None

    def on(self, ledger: Ledger, now_ms: int, *, states: Sequence[State] | None) -> JobQuery:
        """Make the query for the first page of the jobs that fit at this instant.

        Raises:
            InvalidInput: a name or a span is none.
            Unsupported: they ask for an age, and the ledger does not keep the time of enqueue.
        """
        for name, what in ((self.queue, "queue"), (self.effect, "effect")):
            if name is not None:
                check_name(name, what)
        newer_ms, older_ms = self.newer_than_ms, self.older_than_ms
        query = JobQuery(
            states,
            self.queue,
            self.effect,
            error=self.error,
            min_attempts=self.min_attempts,
            max_attempts=self.max_attempts,
            since_ms=None if newer_ms is None else now_ms - newer_ms,
            until_ms=None if older_ms is None else now_ms - older_ms,
        )
        if query.asks_for_age and not ledger.capabilities.keeps_enqueue_time and states != [DEAD]:
            raise Unsupported(
                f"{ledger.location}: a ledger of this kind does not keep when a job was enqueued, so only dead jobs "
                "have an age (--state dead); an SQL ledger keeps it (--store jobs.db)"
            )
        return query


NO_FILTERS: Final = Filters(None, None, None, None, None, None, None)


def all_pages(ledger: Ledger, query: JobQuery) -> Iterator[Job]:
    """Yield every job that the query finds, page after page."""
    query = replace(query, limit=CHUNK)
    while True:
        page = ledger.jobs(query)
        yield from page.jobs
        if page.next is None:
            return
        query = replace(query, after=page.next)


def print_page(ledger: Ledger, page: Page, now_ms: int, *, as_json: bool) -> None:
    """Print the jobs of a page, for a program or for a person."""
    if wants_json(as_json):
        print_document({"schema_version": 1, "jobs": [whole(job) for job in page.jobs], "next": page.next})
        return
    from .render import draw_jobs  # rich is slow to load, and only a terminal needs it

    paused = ledger.paused() if ledger.capabilities.has_schedules else []
    draw_jobs(page, now_ms, paused=paused)
