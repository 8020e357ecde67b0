"""Jobs as people see them on a terminal: a page of them, and all of one."""

from __future__ import annotations

import json
from collections.abc import Collection

from rich.table import Table
from rich.text import Text

from ...model.durations import calendar, relative
from ...model.explain import brief
from ...model.job import Job
from ...model.records import Page
from ..ui.tables import Cell, Column, console, print_table, state, titled_rows, visible
from .detail import JobDetail, command, input_document

JOB_COLUMNS = (
    Column("ID", too_wide="fold", least=16),
    Column("STATE"),
    Column("QUEUE", too_wide="cut", least=7),
    Column("EFFECT", too_wide="cut", least=6),
    Column("TRIES", right=True),
    Column("WHAT", too_wide="cut", least=24),
)


def draw_jobs(page: Page, now_ms: int, *, paused: Collection[str]) -> None:
    """Draw a page of jobs, and say how to get the next page."""
    rows = [job_cells(job, now_ms, paused=job.queue in paused) for job in page.jobs]
    print_table(JOB_COLUMNS, rows, empty="no jobs")
    if page.next is not None:
        print(f"more: add --after {page.next}")


def job_cells(job: Job, now_ms: int, *, paused: bool = False) -> list[Cell]:
    """Make one row of the table."""
    limit = job.stamps.max_attempts
    return [
        job.id,
        state(job.state),
        job.queue,
        job.effect,
        str(job.attempts) if limit is None else f"{job.attempts}/{limit}",
        brief(job, now_ms, paused=paused),
    ]


def draw_job(detail: JobDetail, *, store: str | None, with_text: bool) -> None:
    """Draw all of one job: the sentences first, then the figures."""
    out = console()
    head = Text(detail.job.id, style="bold")
    head.append("  ")
    head.append_text(state(detail.job.state))
    out.print(head)
    explanation = detail.explanation
    out.print()
    out.print(_paragraph("Why", explanation.why + "."))
    out.print(_paragraph("Next", explanation.next + "."))
    for place, advice in enumerate(explanation.advice):
        out.print(_paragraph("" if place else "Do", advice.what))
        if (how := command(advice, detail, store=store)) is not None:
            # Printed as one long line, which the terminal breaks: what a person copies from there is one line.
            out.print(Text("        " + visible(how), style="bold"), soft_wrap=True)
    out.print()
    figures = titled_rows()
    for name, value in _figures(detail, with_text=with_text):
        figures.add_row(name, value)
    out.print(figures)


def _paragraph(title: str, text: str) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", width=4)
    grid.add_column(overflow="fold")
    grid.add_row(title, visible(text))
    return grid


def _figures(detail: JobDetail, *, with_text: bool) -> list[tuple[str, Cell]]:
    job, now_ms = detail.job, detail.now_ms
    rows: list[tuple[str, Cell]] = [
        ("Queue", job.queue),
        ("Effect", job.effect),
        ("Attempts", str(job.attempts)),
        ("Version", f"{job.version} (the fence of its last claim or move)"),
    ]
    if detail.fence is not None:
        rows.append(("Fence", f"{detail.fence} (of the last claim)"))
    if detail.idempotency_key is not None:
        rows.append(("Key", f"{detail.idempotency_key} (the same for every attempt)"))
    if job.priority:
        rows.append(("Priority", str(job.priority)))
    for name, at_ms in (
        ("Enqueued", job.enqueued_at_ms),
        ("Due", job.run_at_ms),
        ("Expires", job.expires_at_ms),
        ("First claimed", job.first_claimed_at_ms),
        ("Claimed", job.claimed_at_ms),
        ("Started", job.started_at_ms),
        ("Lease until", job.lease_until_ms or None),
        ("Completed", job.completed_at_ms),
        ("Died", job.died_at_ms),
    ):
        if at_ms is not None:
            rows.append((name, f"{calendar(at_ms)} ({relative(at_ms, now_ms)})"))
    if job.claimant is not None:
        rows.append(("Claimant", visible(job.claimant)))
    for name, stamp in (
        ("Lease, s", job.stamps.visibility_timeout_s),
        ("Max attempts", job.stamps.max_attempts),
        ("Backoff base, s", job.stamps.backoff_base_s),
        ("Retention, s", job.stamps.dead_letter_retention_s),
    ):
        if stamp is not None:
            rows.append((name, f"{stamp:g}"))
    shown = input_document(detail, with_text=with_text)
    rows.append(
        ("Input", "missing" if shown is None else f"{shown['bytes']:,} bytes, sha256 {shown['sha256']}")
    )
    if shown is not None and with_text:
        rows.append(("Text", _lines(shown["text"])))
    receipt = "none" if detail.receipt is None else json.dumps(detail.receipt.document(), ensure_ascii=False)
    rows.append(("Receipt", visible(receipt)))
    if job.last_error is not None:
        rows.append(("Last error", _lines(job.last_error)))
    for entry in detail.audit:
        by = f" by {entry.actor}" if entry.actor else ""
        why = f": {entry.reason}" if entry.reason else ""
        rows.append(("Audit", visible(f"{calendar(entry.at_ms)} {entry.action}{by}{why}")))
    return rows


def _lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))
