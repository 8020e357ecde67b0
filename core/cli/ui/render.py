"""Jobs, queues and findings as people see them on a terminal."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...model.durations import calendar, relative, words
from ...model.explain import brief
from ...model.job import Job
from ...model.queue_counts import per_minute
from ..jobs.detail import command, input_document
from .tables import (
    STATE_STYLES,
    Cell,
    Column,
    console,
    print_table,
    state,
    visible,
)

if TYPE_CHECKING:
    from ...doctor.examine import Report
    from ...model.queue_counts import QueueCounts
    from ...model.records import AuditEntry, Page, Schedule
    from ..jobs.detail import JobDetail

JOB_COLUMNS = (
    Column("ID", too_wide="fold", least=16),
    Column("STATE"),
    Column("QUEUE", too_wide="cut", least=7),
    Column("EFFECT", too_wide="cut", least=6),
    Column("TRIES", right=True),
    Column("WHAT", too_wide="cut", least=24),
)


def draw_jobs(page: Page, now_ms: int, *, paused: Collection[str]) -> None:
    """A page of jobs, and how to get the next one."""
    rows = [job_cells(job, now_ms, paused=job.queue in paused) for job in page.jobs]
    print_table(JOB_COLUMNS, rows, empty="no jobs")
    if page.next is not None:
        print(f"more: add --after {page.next}")


def job_cells(job: Job, now_ms: int, *, paused: bool = False) -> list[Cell]:
    """One line of the table."""
    limit = job.stamps.max_attempts
    return [
        job.id,
        state(job.state),
        job.queue,
        job.effect,
        str(job.attempts) if limit is None else f"{job.attempts}/{limit}",
        brief(job, now_ms, paused=paused),
    ]


QUEUE_COLUMNS = (
    Column("QUEUE", too_wide="fold", least=10),
    Column("READY", right=True),
    Column("DELAYED", right=True),
    Column("RUNNING", right=True),
    Column("HELD", right=True),
    Column("DEAD", right=True),
    Column("DONE", right=True),
    Column("OLDEST", right=True),
    Column("DONE/MIN", right=True),
)


def draw_queues(
    queues: Sequence[QueueCounts], now_ms: int, window_ms: int, *, paused: Collection[str]
) -> None:
    """How the queues stand."""
    rows = [queue_cells(queue, now_ms, window_ms, paused=queue.queue in paused) for queue in queues]
    print_table(QUEUE_COLUMNS, rows, empty="no queues: the ledger has no jobs")


def queue_cells(queue: QueueCounts, now_ms: int, window_ms: int, *, paused: bool) -> list[Cell]:
    """One line of the table; what needs somebody is in colour."""
    name = Text(queue.queue)
    if paused:
        name.append(" (paused)", style=STATE_STYLES["paused"])
    oldest_ms = queue.oldest_ready_ms
    rate = per_minute(queue.completed_since, window_ms)
    return [
        name,
        f"{queue.ready:,}",
        f"{queue.delayed:,}",
        f"{queue.running:,}",
        Text(f"{queue.held:,}", style=STATE_STYLES["held"] if queue.held else ""),
        Text(f"{queue.dead:,}", style=STATE_STYLES["dead"] if queue.dead else ""),
        f"{queue.completed:,}",
        "" if oldest_ms is None else words(max(0, now_ms - oldest_ms)),
        "" if rate is None else f"{rate:,.1f}",
    ]


SCHEDULE_COLUMNS = (
    Column("NAME", too_wide="fold", least=16),
    Column("EVERY"),
    Column("NEXT"),
    Column("QUEUE", too_wide="cut", least=7),
    Column("EFFECT", too_wide="cut", least=7),
    Column("TEXT", too_wide="cut", least=10),
)


def draw_schedules(schedules: Sequence[Schedule], now_ms: int) -> None:
    """The schedules, and when each fires next."""
    rows: list[list[Cell]] = [
        [
            one.name,
            one.every.removeprefix("@every "),
            relative(one.next_ms or 0, now_ms),
            one.queue,
            one.effect,
            one.text[:200],
        ]
        for one in schedules
    ]
    print_table(SCHEDULE_COLUMNS, rows, empty="no schedules")


AUDIT_COLUMNS = (
    Column("WHEN"),
    Column("ACTION"),
    Column("ID", too_wide="fold", least=16),
    Column("CHANGE", too_wide="cut", least=8),
    Column("WHO", too_wide="cut", least=10),
    Column("WHY", too_wide="cut", least=16),
)


def draw_audit(entries: Sequence[AuditEntry], now_ms: int) -> None:
    """The manual actions, oldest first."""
    rows: list[list[Cell]] = [
        [
            relative(entry.at_ms, now_ms),
            entry.action,
            entry.id,
            f"{entry.from_state} → {entry.to_state or 'purged'}" if entry.from_state else "",
            entry.actor or "",
            entry.reason or "",
        ]
        for entry in entries
    ]
    print_table(AUDIT_COLUMNS, rows, empty="no manual actions on record")


def draw_job(seen: JobDetail, *, store: str | None, with_text: bool) -> None:
    """All of one job: the sentences first, then the figures."""
    out = console()
    head = Text(seen.job.id, style="bold")
    head.append("  ")
    head.append_text(state(seen.job.state))
    out.print(head)
    told = seen.explanation
    out.print()
    out.print(_paragraph("Why", told.why + "."))
    out.print(_paragraph("Next", told.next + "."))
    for place, advice in enumerate(told.advice):
        out.print(_paragraph("" if place else "Do", advice.what))
        if (how := command(advice, seen, store=store)) is not None:
            # The terminal breaks a long line by itself, so that what is copied is one line.
            out.print(Text("        " + visible(how), style="bold"), soft_wrap=True)
    out.print()
    figures = _grid()
    for name, value in _figures(seen, with_text=with_text):
        figures.add_row(name, value)
    out.print(figures)


def draw_findings(report: Report, location: str) -> None:
    """Each finding with its remedy, then what was looked at."""
    out = console()
    for finding in report.findings:
        head = Text(finding.check, style="bold red")
        head.append(f"  {finding.count:,}", style="bold")
        out.print(head)
        told = _grid()
        told.add_row("  What", visible(finding.problem))
        if finding.ids:
            more = " …" if finding.count > len(finding.ids) else ""
            told.add_row("  Which", visible(", ".join(finding.ids)) + more)
        told.add_row("  Do", visible(finding.remedy))
        out.print(Padding(told, (0, 0, 1, 0)))
    count = len(report.findings)
    verdict = {0: "nothing is wrong", 1: "one finding"}.get(count, f"{count} findings")
    out.print(
        Text(
            f"{location}: {verdict}; looked at {report.entries:,} ids, and compared {report.verified:,} of "
            f"{report.receipts:,} receipts with their inputs"
            + ("" if report.verified >= report.receipts else " (all: --verify)")
        )
    )


def _paragraph(title: str, text: str) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", width=4)
    grid.add_column(overflow="fold")
    grid.add_row(title, visible(text))
    return grid


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _figures(seen: JobDetail, *, with_text: bool) -> list[tuple[str, Cell]]:
    job, now_ms = seen.job, seen.now_ms
    rows: list[tuple[str, Cell]] = [
        ("Queue", job.queue),
        ("Effect", job.effect),
        ("Attempts", str(job.attempts)),
        ("Version", f"{job.version} (the fence of its last claim or move)"),
    ]
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
    shown = input_document(seen, with_text=with_text)
    rows.append(
        ("Input", "missing" if shown is None else f"{shown['bytes']:,} bytes, sha256 {shown['sha256']}")
    )
    if shown is not None and with_text:
        rows.append(("Text", _lines(shown["text"])))
    receipt = "none" if seen.receipt is None else json.dumps(seen.receipt.document(), ensure_ascii=False)
    rows.append(("Receipt", visible(receipt)))
    if job.last_error is not None:
        rows.append(("Last error", _lines(job.last_error)))
    for entry in seen.audit:
        by = f" by {entry.actor}" if entry.actor else ""
        why = f": {entry.reason}" if entry.reason else ""
        rows.append(("Audit", visible(f"{calendar(entry.at_ms)} {entry.action}{by}{why}")))
    return rows


def _lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))
