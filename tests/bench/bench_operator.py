"""The operator's commands over a million jobs, on SQLite and on PostgreSQL: whole processes, start-up included.

    python -m tests.bench.bench_operator [sqlite] [postgres]

Each command runs as a person would run it, its output goes nowhere, and the median of a few runs counts. The ledger
holds what one sees after some months: half of the jobs done, most others waiting, some dead, delayed, running, held.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from fencepost.core import open_ledger
from fencepost.core.model.clock import wall_ms

from tests.bench.harness import Line, compiled
from tests.postgres_server import server_url

JOBS = 1_000_000
LINES = 500_000
RUNS = 5
FENCEPOST = "from fencepost.core.cli import main; main()"

COMMANDS: dict[str, tuple[list[str], float]] = {
    "status": (["status"], 1.0),
    "jobs list": (["jobs", "list"], 1.0),
    "jobs list --state dead": (["jobs", "list", "--state", "dead"], 1.0),
    "jobs show": (["jobs", "show", "job-77"], 1.0),
    "queues": (["queues"], 2.0),
    "top --once": (["top", "--once"], 2.0),
}
"""What is measured, and how many seconds it may take."""

DOCTOR_S = 15.0
LINES_MIB = 80.0
"""How much memory an enqueue of any length may take."""

NUMBERED = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {jobs}),
job AS (
    SELECT n, 'job-' || n AS id, 'a few words for job ' || n AS text, {now_ms} - 3 * ({jobs} - n) AS at_ms,
        CASE n % 5 WHEN 0 THEN 'mail' WHEN 1 THEN 'bulk' ELSE 'default' END AS queue,
        CASE WHEN n % 100 < 38 THEN 'queued' WHEN n % 100 < 42 THEN 'delayed' WHEN n % 100 < 47 THEN 'dead'
            WHEN n % 1000 = 50 THEN 'running' WHEN n % 1000 = 51 THEN 'held' ELSE 'completed' END AS state
    FROM number
)
"""
"""So many jobs, for the tables of either engine."""

TABLES = {
    "inputs (id, text)": "SELECT id, {text} FROM job",
    "effects (id, receipt)": "SELECT id, {receipt} FROM job WHERE state = 'completed'",
    "jobs (key, id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, waiting, "
    "enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, completed_at_ms, last_error)": """
        SELECT n, id, CASE state WHEN 'delayed' THEN 'queued' ELSE state END,
            CASE WHEN state IN ('queued', 'delayed') THEN 0 ELSE 1 END,
            CASE state WHEN 'running' THEN {now_ms} + 300000 ELSE 0 END,
            CASE WHEN state IN ('queued', 'delayed') THEN 0 ELSE 1 END, queue, 'count', 0,
            CASE state WHEN 'delayed' THEN {now_ms} + 3600000 + n END, {waiting}, at_ms,
            CASE WHEN state NOT IN ('queued', 'delayed') THEN 'host:1:1' END,
            CASE WHEN state NOT IN ('queued', 'delayed') THEN at_ms END,
            CASE WHEN state NOT IN ('queued', 'delayed') THEN at_ms END,
            CASE state WHEN 'completed' THEN at_ms END,
            CASE state WHEN 'held' THEN 'outcome unknown' END
        FROM job WHERE state <> 'dead'""",
    "dead (key, id, version, attempts, queue, effect, priority, enqueued_at_ms, died_at_ms, last_error)": """
        SELECT n, id, 4, 3, queue, 'count', 0, at_ms, at_ms, 'TimeoutError: no answer in 30 s'
        FROM job WHERE state = 'dead'""",
}


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    """A file with all the jobs; its name as a store."""
    store = str(folder / "jobs.db")
    open_ledger(store).counts()
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.create_function(
            "sha256", 1, lambda text: hashlib.sha256(text.encode()).hexdigest(), deterministic=True
        )
        fields = {
            "text": "text",
            "receipt": "json_object('id', id, 'input_sha256', sha256(text), 'bytes', length(text), 'words', 6)",
            "waiting": "state = 'delayed'",
        }
        connection.execute("PRAGMA synchronous = OFF")
        for table, select in TABLES.items():
            connection.execute(_filling("fencepost_", table, select, fields))
    yield store


@contextmanager
def postgres(_: Path) -> Iterator[str]:
    """A server with all the jobs; its URL."""
    with server_url(durable=True) as store:
        open_ledger(store).counts()
        fields = {
            "text": "convert_to(text, 'UTF8')",
            "receipt": "convert_to(json_build_object('id', id, 'input_sha256', "
            "encode(sha256(convert_to(text, 'UTF8')), 'hex'), 'bytes', length(text), 'words', 6)::text, 'UTF8')",
            "waiting": "state = 'delayed'",
        }
        with psycopg.connect(store, autocommit=True) as connection:
            for table, select in TABLES.items():
                connection.execute(_filling("fencepost_", table, select, fields).encode())
            # As autovacuum leaves it a minute later.
            connection.execute("VACUUM ANALYZE")
        yield store


def _filling(prefix: str, table: str, select: str, fields: dict[str, str]) -> str:
    figures = {"jobs": JOBS, "now_ms": wall_ms()}
    return f"INSERT INTO {prefix}{table} {NUMBERED.format(**figures)} {select.format(**figures, **fields)}"


def run(arguments: list[str], folder: Path, *, status: int = 0) -> tuple[float, float]:
    """Seconds and MiB that one command takes."""
    command, env = [sys.executable, "-c", FENCEPOST, *arguments], compiled(folder / "compiled")
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
    _, ended, usage = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(ended)
    assert process.returncode == status, (arguments, process.returncode)
    return elapsed_s, usage.ru_maxrss / 1024


def looks(kind: str, store: str, folder: Path) -> Iterator[Line]:
    """Every command that a person waits for; the first run of each warms up."""
    for name, (arguments, bar_s) in COMMANDS.items():
        _, *runs = [run([*arguments, "--store", store], folder) for _ in range(RUNS + 1)]
        took_s = [elapsed_s for elapsed_s, _ in runs]
        detail = f"{min(took_s):.2f} at best, {max(mib for _, mib in runs):.0f} MiB"
        yield Line(f"{kind}: {name}", statistics.median(took_s), bar_s, at_most=True, unit="s", detail=detail)


def doctor(kind: str, store: str, folder: Path) -> Iterator[Line]:
    """The doctor, who finds the held jobs and looks at everything."""
    elapsed_s, mib = run(["doctor", "--store", store], folder, status=1)
    yield Line(f"{kind}: doctor", elapsed_s, DOCTOR_S, at_most=True, unit="s", detail=f"{mib:.0f} MiB")
    elapsed_s, mib = run(["doctor", "--verify", "--store", store], folder, status=1)
    yield Line(
        f"{kind}: doctor --verify", elapsed_s, 3 * DOCTOR_S, at_most=True, unit="s", detail=f"{mib:.0f} MiB"
    )


def lines(kind: str, store: str, folder: Path) -> Iterator[Line]:
    """An enqueue of half a million JSON lines, into the ledger that is there."""
    file = folder / "more.jsonl"
    with file.open("w") as out:
        out.writelines(f'{{"id": "more-{n}", "text": "a few words for job {n}"}}\n' for n in range(LINES))
    elapsed_s, mib = run(["enqueue", "--store", store, "--input", str(file), "--queue", "more"], folder)
    with open_ledger(store) as ledger:
        assert ledger.counts(queue="more")["queued"] == LINES
    rate = f"{LINES / elapsed_s:,.0f} records a second"
    yield Line(f"{kind}: memory of 500,000 lines", mib, LINES_MIB, at_most=True, unit="MiB", detail=rate)


ENGINES = {"sqlite": sqlite, "postgres": postgres}


def measure(kind: str, folder: Path) -> Iterator[Line]:
    """All of it on one engine."""
    with ENGINES[kind](folder) as store:
        yield from looks(kind, store, folder)
        yield from doctor(kind, store, folder)
        yield from lines(kind, store, folder)


def main() -> None:
    """Measure the engines that are named, or both, and print the table."""
    found: list[Line] = []
    for kind in sys.argv[1:] or ENGINES:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            for line in measure(kind, Path(folder)):
                print(line, flush=True)
                found.append(line)
    print(f"  {sum(line.passed for line in found)} of {len(found)} bars kept")


if __name__ == "__main__":
    main()
