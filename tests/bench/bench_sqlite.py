"""The SQLite ledger beside raw sqlite3, in the same run and with the same synchronous on both sides.

    python -m tests.bench.bench_sqlite [enqueue] [loop] [depth] [wake]

Raw is what a program would write that knows the tables and checks nothing: plain inserts, and one UPDATE to claim
and one to complete, on the same schema. Every measure counts what it stored before its figure counts.
"""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from fencepost.core import ClaimRequest, NewJob, Receipt, Settlement
from fencepost.core.ledgers.sqlite import SqliteLedger

from tests.bench.harness import Line, medians, percentile

JOBS = 20_000
REQUEST = 1_000
BATCH = 100
SLICES = 7
TEXT = "a few words for job {n}, as short as most are"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
LEASE_MS = 600_000

RAW_INPUT = "INSERT INTO fencepost_inputs (id, text) VALUES (?, ?)"
RAW_JOB = (
    "INSERT INTO fencepost_jobs (key, id, version, queue, effect, priority, enqueued_at_ms) "
    "VALUES (?, ?, 0, 'default', 'count', 0, ?)"
)
RAW_CLAIM = f"""
UPDATE fencepost_jobs SET state = 'running', version = version + 1, attempts = attempts + 1,
    lease_until_ms = ?1 + coalesce(visibility_timeout_ms, {LEASE_MS}), claimant = 'raw', claimed_at_ms = ?1,
    first_claimed_at_ms = coalesce(first_claimed_at_ms, ?1)
WHERE key IN (
    SELECT key FROM fencepost_jobs
    WHERE queue = 'default' AND effect = 'count' AND state = 'queued' AND waiting = 0
    ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT {BATCH}
)
RETURNING
    id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
"""
RAW_RECEIPT = "INSERT INTO fencepost_effects (id, receipt) VALUES (?, ?)"
RAW_COMPLETE = (
    "UPDATE fencepost_jobs SET state = 'completed', lease_until_ms = 0, completed_at_ms = ?3 "
    "WHERE id = ?1 AND version = ?2 AND state = 'running' AND lease_until_ms > ?3"
)


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


@contextmanager
def raw(path: Path, synchronous: str = "FULL") -> Iterator[sqlite3.Connection]:
    """A connection as the ledger's own are set up."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", f"synchronous = {synchronous}", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        yield connection


def make(path: Path, synchronous: Literal["FULL", "OFF"] = "FULL") -> SqliteLedger:
    """A new ledger, its tables made."""
    ledger = SqliteLedger(path, synchronous=synchronous)
    assert sum(ledger.counts().values()) == 0
    return ledger


def count(connection: sqlite3.Connection, what: str) -> int:
    """How many rows there are; ``what`` is a table, and a condition where one is wanted."""
    return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])


# -- enqueue in bulk ---------------------------------------------------------------------------------------


def enqueue_ours(folder: Path) -> float:
    """Requests of a thousand, the jobs made inside of the timing."""
    with make(folder / "jobs.db") as ledger:
        started = time.perf_counter()
        for start in range(0, JOBS, REQUEST):
            ledger.enqueue(NewJob(f"job-{n}", TEXT.format(n=n)) for n in range(start, start + REQUEST))
        elapsed_s = time.perf_counter() - started
        assert ledger.counts()["queued"] == JOBS
    return JOBS / elapsed_s


def enqueue_raw(folder: Path) -> float:
    """The same rows by executemany into the same tables."""
    make(folder / "jobs.db").close()
    with raw(folder / "jobs.db") as connection:
        started = time.perf_counter()
        for start in range(0, JOBS, REQUEST):
            at_ms = now_ms()
            jobs = [(f"job-{n}", TEXT.format(n=n)) for n in range(start, start + REQUEST)]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(RAW_INPUT, jobs)
            connection.executemany(RAW_JOB, [(start + n, id, at_ms) for n, (id, _) in enumerate(jobs, 1)])
            connection.execute("COMMIT")
        elapsed_s = time.perf_counter() - started
        assert count(connection, "fencepost_jobs") == count(connection, "fencepost_inputs") == JOBS
    return JOBS / elapsed_s


def enqueue_lean(folder: Path) -> float:
    """The least that a table of jobs can be."""
    with raw(folder / "lean.db") as connection:
        connection.execute("CREATE TABLE lean (id TEXT PRIMARY KEY, text TEXT NOT NULL)")
        started = time.perf_counter()
        for start in range(0, JOBS, REQUEST):
            jobs = [(f"job-{n}", TEXT.format(n=n)) for n in range(start, start + REQUEST)]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO lean VALUES (?, ?)", jobs)
            connection.execute("COMMIT")
        elapsed_s = time.perf_counter() - started
        assert count(connection, "lean") == JOBS
    return JOBS / elapsed_s


def bench_enqueue() -> list[Line]:
    """Jobs a second, in bulk."""
    rates = medians({"ours": enqueue_ours, "raw": enqueue_raw, "lean": enqueue_lean}, SLICES)
    print("  " + ", ".join(f"{name} {rate:,.0f} jobs/s" for name, rate in rates.items()))
    return [
        Line("enqueue 1,000 a request, of raw executemany", rates["ours"] / rates["raw"], 0.65),
        Line("enqueue 1,000 a request, of a lean table", rates["ours"] / rates["lean"], 0.30),
    ]


# -- claim 100 + settle 100 --------------------------------------------------------------------------------


def fill(path: Path, jobs: int) -> None:
    """So many queued jobs."""
    with make(path) as ledger:
        for start in range(0, jobs, 10_000):
            batch = range(start, min(start + 10_000, jobs))
            ledger.enqueue(NewJob(f"job-{n}", TEXT.format(n=n)) for n in batch)


def loop_ours(folder: Path) -> float:
    """Claims and settlements of a hundred, until nothing is left."""
    fill(folder / "jobs.db", JOBS)
    with SqliteLedger(folder / "jobs.db") as ledger:
        ledger.counts()
        done = 0
        started = time.perf_counter()
        while claimed := ledger.claim(
            ClaimRequest(
                claimant="ours",
                lease_ms=LEASE_MS,
                max_attempts=3,
                limit=BATCH,
                effects=["count"],
                queues=["default"],
            )
        ):
            outcome = {"bytes": 44, "words": 9}
            settled = ledger.settle(
                [Settlement(job.id, job.version, Receipt(job.id, DIGEST, outcome)) for job in claimed]
            )
            done += sum(item.completed for item in settled)
        elapsed_s = time.perf_counter() - started
        assert done == ledger.counts()["completed"] == JOBS
        assert len(ledger.receipts(f"job-{n}" for n in range(JOBS))) == JOBS
    return JOBS / elapsed_s


def loop_raw(folder: Path) -> float:
    """The bare statements: claim in one transaction, receipts and completions in the next."""
    fill(folder / "jobs.db", JOBS)
    with raw(folder / "jobs.db") as connection:
        started = time.perf_counter()
        while True:
            connection.execute("BEGIN IMMEDIATE")
            claimed = connection.execute(RAW_CLAIM, (now_ms(),)).fetchall()
            connection.execute("COMMIT")
            if not claimed:
                break
            at_ms = now_ms()
            receipt = '{{"id":"{}","input_sha256":"' + DIGEST + '","bytes":44,"words":9}}'
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(RAW_RECEIPT, [(row[0], receipt.format(row[0])) for row in claimed])
            connection.executemany(RAW_COMPLETE, [(row[0], row[2], at_ms) for row in claimed])
            connection.execute("COMMIT")
        elapsed_s = time.perf_counter() - started
        assert count(connection, "fencepost_jobs WHERE state = 'completed'") == JOBS
        assert count(connection, "fencepost_effects") == JOBS
    return JOBS / elapsed_s


def bench_loop() -> list[Line]:
    """Jobs a second through claim and settlement."""
    rates = medians({"ours": loop_ours, "raw": loop_raw}, SLICES)
    print("  " + ", ".join(f"{name} {rate:,.0f} jobs/s" for name, rate in rates.items()))
    return [Line("claim 100 + settle 100, of the raw statements", rates["ours"] / rates["raw"], 0.7)]


# -- claim 1, whatever else is there -----------------------------------------------------------------------

DEEP, SHALLOW = 1_000_000, 1_000
CLAIMS = 50
ROUNDS = 12
AT_MS = 1_000_000

BACKLOGS: dict[str, str] = {
    "queued": "'queued', 0, 0, 'default', 'count', 0, NULL, 0, NULL, NULL",
    "delayed, at a higher priority": "'queued', 0, 0, 'default', 'count', 9, 9000000 + n, 1, NULL, NULL",
    "running": "'running', 9000000 + n, 1, 'default', 'count', 9, NULL, 0, NULL, NULL",
    "completed": "'completed', 0, 1, 'default', 'count', 9, NULL, 0, NULL, 5",
    "dead": "'queued', 0, 0, 'default', 'count', 9, NULL, 0, NULL, NULL",
    "expired and unswept": "'queued', 0, 0, 'default', 'count', 9, NULL, 0, n, NULL",
    "expired under a live lease": "'running', 9000000 + n, 1, 'default', 'count', 9, NULL, 0, n, NULL",
    "attempts used up": "'queued', 0, 3, 'default', 'count', 9, NULL, 0, NULL, NULL",
    "of another effect, ahead in order": "'queued', 0, 0, 'default', 'aaa', 9, NULL, 0, NULL, NULL",
    "of another queue, ahead in order": "'queued', 0, 0, 'aaa', 'count', 9, NULL, 0, NULL, NULL",
}
"""state, lease_until_ms, attempts, queue, effect, priority, run_at_ms, waiting, expires_at_ms, completed_at_ms"""


def make_backlog(path: Path, kind: str, depth: int) -> SqliteLedger:
    """A ledger with so many jobs of a kind, and enough to claim beside them."""
    ledger = make(path, "OFF")
    with raw(path, "OFF") as connection:
        connection.execute(
            "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?) "
            "INSERT INTO fencepost_jobs (key, id, version, enqueued_at_ms, state, lease_until_ms, attempts, queue, "
            "effect, priority, run_at_ms, waiting, expires_at_ms, completed_at_ms) "
            f"SELECT n, 'backlog-' || n, 0, n, {BACKLOGS[kind]} FROM number",
            (depth,),
        )
        if kind == "dead":
            columns = "key, id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms"
            connection.execute(
                f"INSERT INTO fencepost_dead ({columns}, died_at_ms) SELECT {columns}, 5 FROM fencepost_jobs"
            )
            connection.execute("DELETE FROM fencepost_jobs")
    if kind in ("expired and unswept", "expired under a live lease", "attempts used up"):
        ledger.pause("default")  # settling goes on, a thousand a claim
        while ledger.counts()["dead"] < depth:
            assert claim_one(ledger) == []
        ledger.resume("default")
    jobs = CLAIMS * (ROUNDS + 1)
    ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(jobs)], now_ms=AT_MS)
    ledger.close()
    ledger = SqliteLedger(path, synchronous="OFF")
    assert sum(ledger.counts().values()) == depth + jobs
    return ledger


def claim_one(ledger: SqliteLedger) -> list[str]:
    """Claim one job of the usual lane."""
    claimed = ledger.claim(
        ClaimRequest(
            claimant="bench", lease_ms=LEASE_MS, max_attempts=3, queues=["default"], effects=["count"]
        ),
        now_ms=AT_MS,
    )
    return [job.id for job in claimed]


def depth(kind: str, folder: Path) -> Line:
    """The median of a single claim in the deep ledger, by that in the shallow one."""
    ledgers = {size: make_backlog(folder / f"{size}.db", kind, size) for size in (DEEP, SHALLOW)}
    took_us: dict[int, list[float]] = {size: [] for size in ledgers}
    claimed: set[tuple[int, str]] = set()
    for round_ in range(ROUNDS + 1):
        for size in random.sample(sorted(ledgers), 2):
            for _ in range(CLAIMS):
                started = time.perf_counter_ns()
                (id,) = claim_one(ledgers[size])
                elapsed_us = (time.perf_counter_ns() - started) / 1_000
                claimed.add((size, id))
                if round_:  # the first round warms the caches
                    took_us[size].append(elapsed_us)
    assert len(claimed) == 2 * (ROUNDS + 1) * CLAIMS, "every claim has handed out another job"
    for ledger in ledgers.values():
        ledger.close()
    deep_us, shallow_us = (statistics.median(took_us[size]) for size in (DEEP, SHALLOW))
    return Line(
        f"claim 1 beside 1,000,000 {kind}",
        deep_us / shallow_us,
        1.2,
        at_most=True,
        detail=f"{deep_us:,.0f} µs, {shallow_us:,.0f} µs beside 1,000",
    )


def bench_depth(*kinds: str) -> list[Line]:
    """What a backlog costs the claims that pass it by."""
    lines = []
    for kind in kinds or BACKLOGS:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            lines.append(depth(kind, Path(folder)))
            print(lines[-1], flush=True)
    return lines


# -- waking ------------------------------------------------------------------------------------------------

WAKES = 300
IDLE_S = 10.0

WAITER = """
import sys, time
from fencepost.core import ClaimRequest
from fencepost.core.ledgers.sqlite import SqliteLedger

ledger = SqliteLedger(sys.argv[1])
print("ready", flush=True)
woken = 0
while True:
    jobs = ledger.claim(ClaimRequest(claimant="waiter", lease_ms=600_000, max_attempts=3, effects=["count"]))
    for job in jobs:
        print(woken, time.monotonic_ns(), job.id, flush=True)
    if not jobs:
        ledger.wait(60)
        woken = time.monotonic_ns()
"""


@contextmanager
def waiter(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that claims whatever comes, and waits in between."""
    process = subprocess.Popen([sys.executable, "-c", WAITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield process
        assert process.poll() is None, "the waiter has ended before its time"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wakes_ms(folder: Path) -> tuple[list[float], list[float]]:
    """From the return of an enqueue here to the end of the wait in the other process, and to its claim's return."""
    woken_ms: list[float] = []
    claimed_ms: list[float] = []
    with make(folder / "jobs.db") as ledger, waiter(folder / "jobs.db") as process:
        assert process.stdout is not None
        for n in range(WAKES):
            time.sleep(random.uniform(0.005, 0.04))
            ledger.enqueue([NewJob(f"job-{n}", "text")])
            committed = time.monotonic_ns()
            woken, claimed, id = process.stdout.readline().split()
            assert id == f"job-{n}"
            # A wait may end before the enqueue here has returned.
            woken_ms.append(max(0.0, (int(woken) - committed) / 1e6))
            claimed_ms.append((int(claimed) - committed) / 1e6)
        assert ledger.counts()["running"] == WAKES
    return woken_ms, claimed_ms


def idle_share(folder: Path) -> float:
    """The percentage of a core that a process takes while it only waits."""
    with make(folder / "jobs.db"), waiter(folder / "jobs.db") as process:
        time.sleep(1.0)
        before_s = cpu_s(process.pid)
        time.sleep(IDLE_S)
        return (cpu_s(process.pid) - before_s) / IDLE_S * 100


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bench_wake() -> list[Line]:
    """How soon another process knows of a job, and what waiting for it costs."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        woken_ms, claimed_ms = wakes_ms(Path(folder))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        idle = idle_share(Path(folder))
    assert len(woken_ms) == len(claimed_ms) == WAKES
    claimed = f"claimed, which is one more commit: {percentile(claimed_ms, 50):.2f} ms"
    return [
        Line("wake-up, p50", percentile(woken_ms, 50), 2, at_most=True, unit="ms", detail=claimed),
        Line("wake-up, p99", percentile(woken_ms, 99), 8, at_most=True, unit="ms"),
        Line("a process that waits, share of a core", idle, 0.5, at_most=True, unit="%"),
    ]


BENCHES: dict[str, Callable[[], list[Line]]] = {
    "enqueue": bench_enqueue,
    "loop": bench_loop,
    "depth": bench_depth,
    "wake": bench_wake,
}


def main() -> None:
    """Run the benches that are named, or all, and print the table."""
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, synchronous=FULL unless said")
    lines: list[Line] = []
    for name in sys.argv[1:] or BENCHES:
        print(f"{name} …", flush=True)
        lines += BENCHES[name]()
    print("\nThe SQLite ledger (bars are the | in the middle)")
    for line in lines:
        print(line)
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {sum(line.passed for line in lines)} of {len(lines)} bars kept; memory at most {memory_mib:,.0f} MiB"
    )


if __name__ == "__main__":
    main()
