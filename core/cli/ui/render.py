"""Queues, schedules, manual actions and findings as people see them on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.padding import Padding
from rich.text import Text

from ...doctor.examine import Report
from ...model.durations import relative, words
from ...model.queue_counts import QueueCounts, per_minute
from ...model.records import AuditEntry, Schedule
from .tables import (
    STATE_STYLES,
    Cell,
    Column,
    console,
    print_table,
    titled_rows,
    visible,
)

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
    """Draw the queues: their counts, their oldest ready jobs and their rates."""
    rows = [queue_cells(queue, now_ms, window_ms, paused=queue.queue in paused) for queue in queues]
    print_table(QUEUE_COLUMNS, rows, empty="no queues: the ledger has no jobs")


def queue_cells(queue: QueueCounts, now_ms: int, window_ms: int, *, paused: bool) -> list[Cell]:
    """Make one row of the table; counts that need attention are in colour."""
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
    Column("ZONE", too_wide="cut", least=6),
    Column("NEXT"),
    Column("QUEUE", too_wide="cut", least=7),
    Column("EFFECT", too_wide="cut", least=7),
    Column("TEXT", too_wide="cut", least=8),
)


def draw_schedules(schedules: Sequence[Schedule], now_ms: int) -> None:
    """Draw the schedules, and when each fires next."""
    rows: list[list[Cell]] = [
        [
            one.name,
            one.every.removeprefix("@every "),
            "" if one.every.startswith("@every ") else one.zone,
            "paused" if one.paused else relative(one.next_ms or 0, now_ms),
            one.queue,
            one.effect,
            one.text[:200],
        ]
        for one in schedules
    ]
    print_table(SCHEDULE_COLUMNS, rows, empty="no schedules")


def draw_times(times: Sequence[tuple[str | None, str | None, str]], zone: str) -> None:
    """The next times of a schedule: by the zone's clock, in UTC, and from now."""
    columns = (Column(f"LOCAL ({zone})"), Column("UTC"), Column("FROM NOW"))
    rows: list[list[Cell]] = [
        [(local or "").replace("T", " "), (utc or "").removesuffix("+00:00").replace("T", " "), away]
        for local, utc, away in times
    ]
    print_table(columns, rows, empty="no more times")


AUDIT_COLUMNS = (
    Column("WHEN"),
    Column("ACTION"),
    Column("ID", too_wide="fold", least=16),
    Column("CHANGE", too_wide="cut", least=8),
    Column("WHO", too_wide="cut", least=10),
    Column("WHY", too_wide="cut", least=16),
)


def draw_audit(entries: Sequence[AuditEntry], now_ms: int) -> None:
    """Draw the manual actions, oldest first."""
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


def draw_findings(report: Report, location: str) -> None:
    """Draw each finding with its remedy, then what was checked."""
    out = console()
    for finding in report.findings:
        head = Text(finding.check, style="bold red")
        head.append(f"  {finding.count:,}", style="bold")
        out.print(head)
        told = titled_rows()
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
