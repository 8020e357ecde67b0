"""What one job costs a PostgreSQL server, in CPU time, log and disk: figures for docs/explanation/scaling.md.

    python -m tests.bench.bench_postgres_cost

CPU time and bytes are what the server says they are, so they hold on a busy machine, too. There are no bars.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
from fencepost.core import NewJob
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker
from fencepost.plugins.manager import Plugins

from tests.postgres_server import Server, server
from tests.worker.doubles import Acting

JOBS = 20_000
SLOW_JOBS = 4_000
REQUEST = 1_000
TEXT = "a few words for job {n}, as short as most are"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """What was used between two looks, for each of so many jobs."""

    cpu_us: float
    wal_bytes: float
    disk_bytes: float


class Meter:
    """Reads what a server has used up to now."""

    def __init__(self, own: Server, connection: psycopg.Connection) -> None:
        self._postmaster = int((own.folder / "data" / "postmaster.pid").read_text().split()[0])
        self._connection = connection

    def cost(self, act: Callable[[], None], jobs: int) -> Cost:
        """Of what ``act`` does."""
        before = self._read()
        act()
        cpu_s, wal, disk = (now - then for now, then in zip(self._read(), before, strict=True))
        return Cost(cpu_s * 1e6 / jobs, wal / jobs, disk / jobs)

    def _read(self) -> tuple[float, float, float]:
        ((wal, disk),) = self._connection.execute(
            "SELECT pg_current_wal_lsn() - '0/0', pg_database_size(current_database())"
        ).fetchall()
        return self._cpu_s(), float(wal), float(disk)

    def _cpu_s(self) -> float:
        """Of all its processes, those that have ended included."""
        while True:
            try:
                return self._cpu_now_s()
            except (FileNotFoundError, ProcessLookupError):
                continue  # a process ended while it was looked at: by now it is one of those that have

    def _cpu_now_s(self) -> float:
        children = Path(f"/proc/{self._postmaster}/task/{self._postmaster}/children").read_text().split()
        ended = sum(_times(self._postmaster)[2:])
        return TICK_S * (ended + sum(sum(_times(pid)[:2]) for pid in (self._postmaster, *map(int, children))))


def _times(pid: int) -> tuple[int, int, int, int]:
    """In user and system mode, of itself and of its children that have ended, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, ended_user, ended_system = map(int, fields[11:15])
    return user, system, ended_user, ended_system


def enqueue(ledger: PostgresLedger, first: int, request: int) -> None:
    """Enqueue the jobs, so many in a request."""
    for start in range(first, first + JOBS, request):
        ledger.enqueue([NewJob(f"job-{n}", TEXT.format(n=n)) for n in range(start, start + request)])


def work(url: str) -> None:
    """One worker does everything that is there, with ``count``."""
    with PostgresLedger(url) as ledger:
        options = WorkerOptions(claimant="bench", idle_exit_s=0.0)
        Worker(ledger, {"count": Plugins.load().choose("count")}, options).run()


def work_slowly(url: str) -> None:
    """Eight threads, and an effect that takes 5 ms: what finishes together is settled together."""

    def effect(_: object) -> dict[str, int]:
        time.sleep(0.005)
        return {"n": 1}

    with PostgresLedger(url) as ledger:
        ledger.enqueue([NewJob(f"slow-{n}", TEXT.format(n=n), effect="act") for n in range(SLOW_JOBS)])
        options = WorkerOptions(claimant="bench", idle_exit_s=0.0, concurrency=8)
        Worker(ledger, {"act": Acting(effect)}, options).run()


def main() -> None:
    """Print the costs, a line each."""
    with server(durable=True) as own, psycopg.connect(own.url, autocommit=True) as connection:
        meter = Meter(own, connection)
        with PostgresLedger(own.url) as ledger:
            enqueue(ledger, 0, REQUEST)  # tables and caches grow to their usual size
            work(own.url)
            for name, act, jobs in (
                ("enqueue, 1,000 a request", lambda: enqueue(ledger, JOBS, REQUEST), JOBS),
                ("work, count", lambda: work(own.url), JOBS),
                ("enqueue, one a request", lambda: enqueue(ledger, 2 * JOBS, 1), JOBS),
                ("work, count, again", lambda: work(own.url), JOBS),
                ("enqueue and work, 8 threads of 5 ms", lambda: work_slowly(own.url), SLOW_JOBS),
            ):
                cost = meter.cost(act, jobs)
                print(
                    f"{name:40} {cost.cpu_us:7.0f} µs of CPU {cost.wal_bytes:7,.0f} B of WAL "
                    f"{cost.disk_bytes:7,.0f} B on disk, a job"
                )
            assert ledger.counts()["completed"] == 3 * JOBS + SLOW_JOBS


if __name__ == "__main__":
    main()
