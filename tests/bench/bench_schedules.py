"""What a tick costs with 1,000 schedules of cron fields in three zones: all of them due, and none.

python -m tests.bench.bench_schedules

Wall time, the median of the days of a week. A directory stores each job's input as a file of its own, which is made
durable before the next: its bar is that of the ticks at which nothing is due.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from fencepost.core import Ledger, Schedule, open_ledger

from tests.bench.harness import Line
from tests.postgres_server import server_url

SCHEDULES = 1_000
DAYS = 5
DAY_MS = 86_400_000
MONDAY_MS = 1_780_264_800_000
TICK_BAR_MS = 100.0
ZONES = ("Europe/Berlin", "America/New_York", "UTC")


def tick_ms(ledger: Ledger, now_ms: int, fires: int) -> float:
    """How long a tick takes that fires so many."""
    started = time.perf_counter()
    fired = ledger.tick(now_ms=now_ms)
    took_ms = (time.perf_counter() - started) * 1_000
    assert len(fired) == fires
    return took_ms


def measure(name: str, store: str | Path) -> list[Line]:
    """Two lines of the table."""
    with open_ledger(store) as ledger:
        schedules = [
            Schedule(f"s-{n}", f"{n % 60} {n % 24} * * *", "text", zone=ZONES[n % len(ZONES)])
            for n in range(SCHEDULES)
        ]
        ledger.apply_schedules(schedules, now_ms=MONDAY_MS)
        due, idle = [], []
        for day in range(1, DAYS + 1):
            now_ms = MONDAY_MS + day * DAY_MS
            due.append(tick_ms(ledger, now_ms, SCHEDULES))
            idle.append(tick_ms(ledger, now_ms, 0))
    bar_ms = float("inf") if name == "directory" else TICK_BAR_MS
    return [
        Line(f"{name}: a tick that fires {SCHEDULES:,}", statistics.median(due), bar_ms, True, "ms"),
        Line(
            f"{name}: a tick of {SCHEDULES:,} at which none is due",
            statistics.median(idle),
            TICK_BAR_MS,
            True,
            "ms",
        ),
    ]


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder, server_url() as url:
        lines = [
            *measure("sqlite", Path(folder) / "jobs.db"),
            *measure("postgres", url),
            *measure("directory", Path(folder) / "store"),
        ]
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
