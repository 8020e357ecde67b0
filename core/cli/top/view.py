"""The screen of ``top``, which fits any terminal of 40 columns and 10 lines or more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from ...model.durations import calendar, relative, words
from ...model.explain import first_line
from ...model.job import (
    COMPLETED,
    DEAD,
    HELD,
    QUEUED,
    Job,
)
from ...model.job import RUNNING as JOB_RUNNING
from ..ui.tables import (
    GAP,
    STATE_STYLES,
    Cell,
    Column,
    natural_width,
    table,
    visible,
)
from .snapshot import Line, Snapshot, sparkline

QUEUES: Final = (
    Column("QUEUE", too_wide="cut", least=8),
    Column("READY", right=True),
    Column("LATER", right=True),
    Column("RUN", right=True),
    Column("HELD", right=True),
    Column("DEAD", right=True),
    Column("DONE", right=True),
    Column("OLDEST", right=True),
    Column("DONE/S", right=True),
)
ALWAYS: Final = ("QUEUE", "READY", "RUN", "HELD", "DEAD", "DONE/S")
"""The columns that are shown where there is no space for all of them."""
BARS: Final = Column("")
RUNNING: Final = (
    Column("RUNNING", too_wide="cut", least=12),
    Column("QUEUE", too_wide="cut", least=6),
    Column("EFFECT", too_wide="cut", least=6),
    Column("TRY", right=True),
    Column("SINCE", right=True),
    Column("LEASE LEFT", right=True),
    Column("WHO", too_wide="cut", least=8),
)
DEATHS: Final = (
    Column("DIED LAST", too_wide="cut", least=12),
    Column("QUEUE", too_wide="cut", least=6),
    Column("TRIES", right=True),
    Column("WHEN", right=True),
    Column("WHY", too_wide="cut", least=16),
)
FOOTER: Final = "q quits"
MOST_BARS: Final = 40
FEWEST_BARS: Final = 4


def draw(console: Console, snapshot: Snapshot, *, width: int, height: int) -> list[str]:
    """Draw the lines of the screen, at most ``height`` of them, none wider than ``width``."""
    free = height - 4  # two lines of head, a blank one, and the foot
    parts = _shares(free, len(snapshot.queues), len(snapshot.running), len(snapshot.deaths))
    with console.capture() as captured:
        console.print(_head(snapshot), overflow="ellipsis", no_wrap=True)
        console.print(_sums(snapshot), overflow="ellipsis", no_wrap=True)
        console.print()
        sections: list[tuple[Sequence[Column], list[list[Cell]]]] = [
            _queues(snapshot, width),
            (RUNNING, [_running(job, snapshot.now_ms) for job in snapshot.running]),
            (DEATHS, [_death(job, snapshot.now_ms) for job in snapshot.deaths]),
        ]
        for (columns, rows), most in zip(sections, parts, strict=True):
            if most:
                console.print(table(columns, rows[:most], width=width))
                console.print()
    lines = captured.get().rstrip("\n").split("\n")[: height - 1]
    return [*lines, *[""] * (height - 1 - len(lines)), FOOTER]


def _shares(free: int, queues: int, running: int, deaths: int) -> tuple[int, int, int]:
    """Return how many rows each section gets: all where they fit, else fair parts, the queues first.

    A section also costs its header and a blank line.
    """
    wanted = [queues, running, deaths]
    given = [0, 0, 0]
    left = free
    for place, want in enumerate(wanted):
        if want and left >= 3:
            given[place] = 1
            left -= 3
    while left > 0 and any(0 < given[place] < wanted[place] for place in range(3)):
        for place in range(3):
            if 0 < given[place] < wanted[place] and left > 0:
                given[place] += 1
                left -= 1
    return given[0], given[1], given[2]


def _head(snapshot: Snapshot) -> Text:
    head = Text("fencepost top  ", style="bold")
    head.append(visible(snapshot.location), style="not bold")
    head.append(f"  {calendar(snapshot.now_ms)}", style="not bold")
    if snapshot.fault is not None:
        head.append(
            f"  cannot be read, trying again: {visible(first_line(snapshot.fault))}", style="bold red"
        )
    return head


def _sums(snapshot: Snapshot) -> Text:
    line = Text()
    for state in (QUEUED, JOB_RUNNING, HELD, DEAD, COMPLETED):
        count = sum(queue.counts.by_state[state] for queue in snapshot.queues)
        word = "done" if state == COMPLETED else state
        line.append(f"{count:,} {word}", style=STATE_STYLES[state] if count else "")
        line.append("  ")
    if snapshot.per_s is not None:
        line.append(f"{snapshot.per_s:,.1f}/s", style="bold")
    if snapshot.counted_ago_s >= 2:
        line.append(f"  counted {words(round(snapshot.counted_ago_s) * 1_000)} ago")
    return line


def _queues(snapshot: Snapshot, width: int) -> tuple[Sequence[Column], list[list[Cell]]]:
    """Make the table of the queues, with bars where there is space beside it."""
    columns: Sequence[Column] = QUEUES
    rows = [_queue(line, snapshot.now_ms) for line in snapshot.queues]
    if natural_width(columns, rows) > width:
        kept = [place for place, column in enumerate(columns) if column.title in ALWAYS]
        columns, rows = [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]
    bars = min(MOST_BARS, width - natural_width(columns, rows) - GAP)
    if bars < FEWEST_BARS:
        return columns, rows
    for row, line in zip(rows, snapshot.queues, strict=True):
        row.append(Text(sparkline(line.series, bars), style="green"))
    return [*columns, BARS], rows


def _queue(line: Line, now_ms: int) -> list[Cell]:
    counts = line.counts
    rate = "" if line.per_s is None else f"{line.per_s:,.1f}"
    oldest_ms = counts.oldest_ready_ms
    return [
        counts.queue,
        f"{counts.ready:,}",
        f"{counts.delayed:,}",
        f"{counts.running:,}",
        Text(f"{counts.held:,}", style=STATE_STYLES["held"] if counts.held else ""),
        Text(f"{counts.dead:,}", style=STATE_STYLES["dead"] if counts.dead else ""),
        f"{counts.completed:,}",
        "" if oldest_ms is None else words(max(0, now_ms - oldest_ms)),
        Text("paused", style=STATE_STYLES["paused"]) if line.paused else rate,
    ]


def _running(job: Job, now_ms: int) -> list[Cell]:
    left_ms = job.lease_until_ms - now_ms
    limit = job.stamps.max_attempts
    return [
        job.id,
        job.queue,
        job.effect,
        str(job.attempts) if limit is None else f"{job.attempts}/{limit}",
        "" if job.claimed_at_ms is None else words(max(0, now_ms - job.claimed_at_ms)),
        words(left_ms) if left_ms > 0 else Text(f"ended {relative(job.lease_until_ms, now_ms)}", style="red"),
        job.claimant or "",
    ]


def _death(job: Job, now_ms: int) -> list[Cell]:
    return [
        job.id,
        job.queue,
        str(job.attempts),
        "" if job.died_at_ms is None else relative(job.died_at_ms, now_ms),
        first_line(job.last_error or ""),
    ]
