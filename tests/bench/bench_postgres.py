"""The PostgreSQL ledger beside COPY, raw psycopg, procrastinate and pgqueuer, on one server and in one run.

    python -m tests.bench.bench_postgres [enqueue] [worker] [two] [wake] [depth] [snapshot]

The server is one of its own with PostgreSQL's defaults (fsync and synchronous_commit on), or the one that
``FENCEPOST_TEST_POSTGRES_URL`` names. Every measure counts what it stored before its figure counts.
"""

from __future__ import annotations

import logging
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from fencepost.core import ClaimRequest, NewJob, Receipt, Settlement
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker
from fencepost.plugins.manager import Plugins

from tests.bench.collecting import as_in_a_following_worker
from tests.bench.databases import JOBS, REQUEST, count, database, fill, texts
from tests.bench.harness import Line, medians, percentile
from tests.bench.postgres_peers import floor, pgqueuer, procrastinate
from tests.bench.worker_process import PATIENCE_S, Working, await_ready, cpu_s
from tests.postgres_server import server_url

SLICES = 5
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
LEASE_MS = 600_000


# -- enqueue in bulk ---------------------------------------------------------------------------------------


def enqueue_ours(server: str, folder: Path) -> float:
    """Requests of a thousand, the jobs made inside of the timing."""
    with database(server) as url, PostgresLedger(url) as ledger:
        ledger.counts()
        started = time.perf_counter()
        for start in range(0, JOBS, REQUEST):
            ledger.enqueue(NewJob(id, text) for id, text in texts(start, start + REQUEST))
        elapsed_s = time.perf_counter() - started
        assert ledger.counts()["queued"] == JOBS
    return JOBS / elapsed_s


def enqueue_copy(server: str, folder: Path) -> float:
    """The same rows by COPY, the text format written by hand, a thousand a commit."""
    with database(server) as url:
        with PostgresLedger(url) as ledger:
            ledger.counts()
        with psycopg.connect(url, autocommit=True) as connection:
            started = time.perf_counter()
            for start in range(0, JOBS, REQUEST):
                at_ms = time.time_ns() // 1_000_000
                jobs = texts(start, start + REQUEST)
                with connection.transaction(), connection.cursor() as cursor:
                    with cursor.copy("COPY fencepost_inputs (id, text) FROM STDIN") as copy:
                        copy.write("".join([f"{id}\t{text}\n" for id, text in jobs]))
                    with cursor.copy(
                        "COPY fencepost_jobs (key, id, version, queue, effect, priority, enqueued_at_ms) "
                        "FROM STDIN"
                    ) as copy:
                        copy.write(
                            "".join(
                                [
                                    f"{key}\t{id}\t0\tdefault\tcount\t0\t{at_ms}\n"
                                    for key, (id, _) in enumerate(jobs, start + 1)
                                ]
                            )
                        )
            elapsed_s = time.perf_counter() - started
            assert count(connection, "fencepost_jobs") == count(connection, "fencepost_inputs") == JOBS
    return JOBS / elapsed_s


def bench_enqueue(server: str) -> list[Line]:
    """Jobs a second, in bulk."""
    rates = medians({"ours": partial(enqueue_ours, server), "COPY": partial(enqueue_copy, server)}, SLICES)
    tell(rates)
    return [Line("enqueue 1,000 a request, of COPY", rates["ours"] / rates["COPY"], 0.55)]


# -- one worker process, from claim to completion ----------------------------------------------------------


def fencepost(server: str, folder: Path) -> float:
    """A following worker with one slot, the default effect, receipts written; until the last completion is told."""
    effect = Plugins.load().choose("count")
    done, ended = 0, 0.0

    def tell(event: object) -> None:
        nonlocal done, ended
        done, ended = done + 1, time.perf_counter()

    with database(server) as url:
        fill(url, JOBS)
        with PostgresLedger(url) as ledger:
            ledger.counts()
            options = WorkerOptions(claimant="bench", idle_exit_s=0.0)
            worker = Worker(ledger, {"count": effect}, options, on_event=tell)
            with as_in_a_following_worker():
                started = time.perf_counter()
                worker.run()
            assert ledger.counts()["completed"] == done == JOBS
            assert len(ledger.receipts(f"job-{n}" for n in range(JOBS))) == JOBS
    return JOBS / (ended - started)


def tell(rates: dict[str, float]) -> None:
    print("  " + ", ".join(f"{name} {rate:,.0f} jobs/s" for name, rate in rates.items()), flush=True)


def bench_worker(server: str) -> list[Line]:
    """Jobs a second of one worker process."""
    for name in ("pgqueuer", "procrastinate"):
        logging.getLogger(name).setLevel(logging.ERROR)
    rates = medians(
        {
            "ours": partial(fencepost, server),
            "raw, 100 at a time": partial(floor, 100, server),
            "raw, 500 at a time": partial(floor, 500, server),
            "pgqueuer 100": partial(pgqueuer, 100, server),
            "pgqueuer 500": partial(pgqueuer, 500, server),
            "procrastinate": partial(procrastinate, 10, server),
        },
        SLICES,
    )
    tell(rates)
    raw = max(rates["raw, 100 at a time"], rates["raw, 500 at a time"])
    peer = max(rate for name, rate in rates.items() if name.startswith(("pgq", "pro")))
    return [
        Line("one worker, of the raw statements", rates["ours"] / raw, 0.6),
        Line("one worker, of the better peer", rates["ours"] / peer, 1.2),
    ]


# -- two worker processes ----------------------------------------------------------------------------------

WAITS = 4_000
SLOTS = 4
FIVE_MS = """
import time
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo("wait", "waits 5 ms", delivery="local")

@hookimpl
def effect_apply(request):
    time.sleep(0.005)
    return {}
"""


def waits(processes: int, server: str, folder: Path) -> float:
    """So many processes with four slots each; the rate between the first claim and the last completion."""
    effect = folder / "wait.py"
    effect.write_text(FIVE_MS)
    options = ("--plugin", str(effect), "--concurrency", str(SLOTS))
    with database(server) as url, ExitStack() as stack:
        await_ready(url, [stack.enter_context(Working(url, *options)) for _ in range(processes)])
        fill(url, WAITS, "wait", prefix="wait")
        done = "effect = 'wait' AND state = 'completed'"
        deadline = time.monotonic() + PATIENCE_S
        with psycopg.connect(url, autocommit=True) as connection:
            while count(connection, f"fencepost_jobs WHERE {done}") < WAITS:
                assert time.monotonic() < deadline, "the workers do not get on"
                time.sleep(0.05)
            took_ms, workers = connection.execute(
                "SELECT max(completed_at_ms) - min(first_claimed_at_ms), count(DISTINCT claimant) "
                f"FROM fencepost_jobs WHERE {done}".encode()
            ).fetchall()[0]
            assert workers == processes
            assert count(connection, "fencepost_effects WHERE id LIKE 'wait-%'") == WAITS
    return float(WAITS / took_ms * 1_000)


def bench_two(server: str) -> list[Line]:
    """What a second worker process adds where jobs wait for something."""
    rates = medians({"one": partial(waits, 1, server), "two": partial(waits, 2, server)}, SLICES)
    tell(rates)
    return [Line("an effect that waits 5 ms, two processes", rates["two"] / rates["one"], 1.8)]


# -- waking ------------------------------------------------------------------------------------------------

WAKES = 300
IDLE_S = 10.0
STAMP = """
import time
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo("stamp", "tells when it starts", delivery="local")

@hookimpl
def effect_apply(request):
    return {"ns": time.monotonic_ns()}
"""


def wakes_ms(server: str) -> tuple[list[float], list[float]]:
    """To the start of the attempt in a worker process: from the return of the enqueue here, and from its beginning."""
    woken_ms: list[float] = []
    whole_ms: list[float] = []
    with tempfile.TemporaryDirectory(dir=".") as folder, database(server) as url:
        effect = Path(folder) / "stamp.py"
        effect.write_text(STAMP)
        with Working(url, "--plugin", str(effect)) as worker, PostgresLedger(url) as ledger:
            await_ready(url, [worker])
            for n in range(WAKES):
                time.sleep(random.uniform(0.01, 0.04))
                while not worker.events.empty():
                    worker.events.get()
                sent = time.monotonic_ns()
                ledger.enqueue([NewJob(f"wake-{n}", "text", effect="stamp")])
                committed = time.monotonic_ns()
                worker.events.get(timeout=PATIENCE_S)
                outcome: Any = ledger.receipts([f"wake-{n}"])[f"wake-{n}"].outcome
                # An attempt may start before the enqueue here has returned.
                woken_ms.append(max(0.0, (outcome["ns"] - committed) / 1e6))
                whole_ms.append((outcome["ns"] - sent) / 1e6)
    return woken_ms, whole_ms


def idle_share(server: str) -> float:
    """The percentage of a core that a worker process takes while it only waits."""
    with database(server) as url, Working(url) as worker:
        await_ready(url, [worker])
        time.sleep(1.0)
        before_s = cpu_s(worker.process.pid)
        time.sleep(IDLE_S)
        return (cpu_s(worker.process.pid) - before_s) / IDLE_S * 100


def bench_wake(server: str) -> list[Line]:
    """How soon a worker starts on a job of another process, and what waiting for it costs."""
    woken_ms, whole_ms = wakes_ms(server)
    idle = idle_share(server)
    assert len(woken_ms) == WAKES
    detail = f"p99 {percentile(woken_ms, 99):.2f} ms; with the enqueue itself p50 {percentile(whole_ms, 50):.2f} ms"
    return [
        Line(
            "wake-up to the attempt, p50", percentile(woken_ms, 50), 5, at_most=True, unit="ms", detail=detail
        ),
        Line("an idle worker, share of a core", idle, 1, at_most=True, unit="%"),
    ]


# -- claim and settle, whatever else is there --------------------------------------------------------------

DEEP = {"completed": 1_000_000, "delayed": 100_000, "running": 50_000}
SHALLOW = {"completed": 1_000, "delayed": 100, "running": 50}
BATCH = 100
ROUNDS = 40
BACKLOGS = {
    "completed": "'completed', 0, 1, NULL, 0, 5",
    "delayed": "'queued', 0, 0, 9000000000000 + n, 1, NULL",
    "running": "'running', 9000000000000 + n, 1, NULL, 0, NULL",
}
"""state, lease_until_ms, attempts, run_at_ms, waiting, completed_at_ms"""


def make_backlog(url: str, depths: Mapping[str, int]) -> None:
    """So many jobs of each kind with their inputs and receipts, and enough to claim beside them."""
    with PostgresLedger(url) as ledger:
        ledger.counts()
    with psycopg.connect(url, autocommit=True) as connection:
        for kind, depth in depths.items():
            for statement in (
                "INSERT INTO fencepost_jobs (key, id, version, queue, effect, priority, enqueued_at_ms, state, "
                "lease_until_ms, attempts, run_at_ms, waiting, completed_at_ms) "
                f"SELECT nextval('fencepost_requests'), '{kind}-' || n, 1, 'default', 'count', 0, n, {BACKLOGS[kind]} "
                f"FROM generate_series(1, {depth}) AS n",
                f"INSERT INTO fencepost_inputs SELECT '{kind}-' || n, 'a text' FROM generate_series(1, {depth}) AS n",
                f"INSERT INTO fencepost_effects SELECT '{kind}-' || n, '{{}}' FROM generate_series(1, {depth}) AS n "
                f"WHERE '{kind}' = 'completed'",
            ):
                connection.execute(statement.encode())
        assert count(connection, "fencepost_jobs") == sum(depths.values())
    fill(url, BATCH * (ROUNDS + 1))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # or autovacuum would do so in the middle
        connection.execute("CHECKPOINT")


def claim_and_settle_ms(ledger: PostgresLedger) -> tuple[float, float]:
    """One claim of a hundred, and their settlement."""
    started = time.perf_counter()
    claimed = ledger.claim(
        ClaimRequest(claimant="bench", lease_ms=LEASE_MS, max_attempts=3, limit=BATCH, effects=["count"])
    )
    between = time.perf_counter()
    settlements = [
        Settlement(job.id, job.version, Receipt(job.id, DIGEST, {"bytes": 44, "words": 9})) for job in claimed
    ]
    before = time.perf_counter()
    settled = ledger.settle(settlements)
    ended = time.perf_counter()
    assert sum(item.completed for item in settled) == BATCH
    return (between - started) * 1_000, (ended - before) * 1_000


def bench_depth(server: str) -> list[Line]:
    """What a backlog costs the claims and settlements that pass it by."""
    figures: dict[str, list[tuple[float, float]]] = {"deep": [], "shallow": []}
    with database(server) as deep, database(server) as shallow:
        make_backlog(deep, DEEP)
        make_backlog(shallow, SHALLOW)
        with PostgresLedger(deep) as deep_ledger, PostgresLedger(shallow) as shallow_ledger:
            ledgers = {"deep": deep_ledger, "shallow": shallow_ledger}
            for round_ in range(ROUNDS + 1):
                for name in random.sample(sorted(ledgers), 2):
                    took_ms = claim_and_settle_ms(ledgers[name])
                    if round_:  # the first round warms the caches
                        figures[name].append(took_ms)
            for name, depths in (("deep", DEEP), ("shallow", SHALLOW)):
                found = ledgers[name].counts()
                assert found["completed"] == depths["completed"] + BATCH * (ROUNDS + 1)
                assert found["running"] == depths["running"]
    lines = []
    for place, verb in enumerate(("claim", "settle")):
        deep_ms, shallow_ms = (statistics.median(took[place] for took in figures[name]) for name in figures)
        lines.append(
            Line(
                f"{verb} 100 beside 1,150,000 jobs",
                deep_ms / shallow_ms,
                1.3,
                at_most=True,
                detail=f"{deep_ms:.2f} ms, {shallow_ms:.2f} ms beside 1,150",
            )
        )
    return lines


# -- beside an old snapshot --------------------------------------------------------------------------------

OLD_JOBS = 100_000
OLD_SLICES = 3


def drained_s(server: str, *, beside_old_snapshot: bool) -> float:
    """Seconds for a worker process's work on 100,000 jobs, enqueued in requests of a thousand before."""
    with database(server) as url, ExitStack() as stack:
        with PostgresLedger(url) as ledger:
            ledger.counts()
        if beside_old_snapshot:
            old = stack.enter_context(psycopg.connect(url))
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert count(old, "fencepost_jobs") == 0
        fill(url, OLD_JOBS)
        with PostgresLedger(url) as ledger:
            options = WorkerOptions(claimant="bench", idle_exit_s=0.0)
            worker = Worker(ledger, {"count": Plugins.load().choose("count")}, options)
            started = time.perf_counter()
            worker.run()
            elapsed_s = time.perf_counter() - started
            assert ledger.counts()["completed"] == OLD_JOBS
        if beside_old_snapshot:
            assert count(old, "fencepost_jobs") == 0, "the snapshot is as old as the jobs"
    return elapsed_s


def bench_snapshot(server: str) -> list[Line]:
    """What a transaction costs that was open since before the first job, so that no dead row can go."""
    figures: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(OLD_SLICES):
        for old in random.sample([False, True], 2):
            figures[old].append(drained_s(server, beside_old_snapshot=old))
    with_s, without_s = statistics.median(figures[True]), statistics.median(figures[False])
    print(
        f"  100,000 jobs beside a transaction open since before the first: {with_s / without_s:.2f} × as long "
        f"({OLD_JOBS / with_s:,.0f} jobs/s, {OLD_JOBS / without_s:,.0f} without)"
    )
    return []


BENCHES: dict[str, Callable[[str], list[Line]]] = {
    "enqueue": bench_enqueue,
    "worker": bench_worker,
    "two": bench_two,
    "wake": bench_wake,
    "depth": bench_depth,
    "snapshot": bench_snapshot,
}


def main() -> None:
    """Run the benches that are named, or all, and print the table."""
    lines: list[Line] = []
    with server_url(durable=True) as server:
        with psycopg.connect(server) as connection:
            version = connection.info.server_version // 10_000
        print(f"PostgreSQL {version}, psycopg {psycopg.__version__}, Python {sys.version.split()[0]}")
        for name in sys.argv[1:] or BENCHES:
            print(f"{name} …", flush=True)
            lines += BENCHES[name](server)
    print("\nThe PostgreSQL ledger (bars are the | in the middle)")
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
