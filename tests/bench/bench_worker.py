"""A worker on SQLite, synchronous=FULL, beside the raw floor and beside the workers of other queues, in one run.

    python -m tests.bench.bench_worker

Every measure runs in slices, in shuffled order; what is printed are medians. Each slice counts what it stored.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from fencepost.core import NewJob, open_ledger
from fencepost.core.ledgers.protocol import Ledger
from fencepost.core.model.effect import Effect, EffectInfo
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker
from fencepost.plugins.manager import Plugins

from tests.bench.collecting import as_in_a_following_worker
from tests.bench.harness import medians

JOBS = 20_000
PEER_JOBS = JOBS // 10
"""Peers commit once or twice for each job; a tenth of the jobs tells their rate."""
SLEEPS = 10_000
SLICES = 7
TEXT = "a few words for job {n}, as short as most are"


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


def fill(store: str, jobs: int, effect: str = "count") -> None:
    """Enqueue so many jobs."""
    with open_ledger(store) as ledger:
        for start in range(0, jobs, 1_000):
            ledger.enqueue(
                NewJob(f"job-{n}", TEXT.format(n=n), effect=effect)
                for n in range(start, min(start + 1_000, jobs))
            )


def floor(folder: Path) -> float:
    """Raw sqlite3 on the same tables: claim 100; then 100 receipts and completions in one commit."""
    store = str(folder / "floor.db")
    fill(store, JOBS)
    connection = sqlite3.connect(store, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    done = 0
    started = time.perf_counter()
    while True:
        at = now_ms()
        connection.execute("BEGIN IMMEDIATE")
        claimed = connection.execute(
            "UPDATE fencepost_jobs SET state='running', version=version+1, attempts=attempts+1, lease_until_ms=?, "
            "claimant='raw', claimed_at_ms=?, first_claimed_at_ms=coalesce(first_claimed_at_ms, ?) WHERE key IN "
            "(SELECT key FROM fencepost_jobs WHERE state='queued' AND waiting=0 AND queue='default' AND "
            "effect='count' ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT 100) "
            "RETURNING key, id, version",
            (at + 30_000, at, at),
        ).fetchall()
        connection.execute("COMMIT")
        if not claimed:
            break
        marks = ",".join("?" * len(claimed))
        texts = connection.execute(
            f"SELECT id, text FROM fencepost_inputs WHERE id IN ({marks})", [id for _, id, _ in claimed]
        ).fetchall()
        receipts = []
        for id, text in texts:
            data = text if isinstance(text, bytes) else text.encode()
            digest = hashlib.sha256(data).hexdigest()
            words = len(data.split())
            receipts.append(
                (id, f'{{"bytes":{len(data)},"id":"{id}","input_sha256":"{digest}","words":{words}}}')
            )
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(RECEIPT, receipts)
        connection.executemany(
            "UPDATE fencepost_jobs SET state='completed', lease_until_ms=0, completed_at_ms=? "
            "WHERE key=? AND version=? AND state='running' AND lease_until_ms > ?",
            [(at, key, version, at) for key, _, version in claimed],
        )
        connection.execute("COMMIT")
        done += len(claimed)
    elapsed_s = time.perf_counter() - started
    stored = connection.execute("SELECT count(*) FROM fencepost_effects").fetchone()[0]
    connection.close()
    assert done == stored == JOBS
    return JOBS / elapsed_s


RECEIPT = "INSERT INTO fencepost_effects (id, receipt) VALUES (?, ?)"


def fencepost(folder: Path) -> float:
    """A following worker with one slot, the default effect, receipts written."""
    store = str(folder / "jobs.db")
    fill(store, JOBS)
    with open_ledger(store) as ledger:
        rate = work_off(ledger, Plugins.load().choose("count"), JOBS, concurrency=1)
        assert len(ledger.receipts(f"job-{n}" for n in range(0, JOBS, 100))) == JOBS // 100
    return rate


def work_off(ledger: Ledger, effect: Effect, jobs: int, *, concurrency: int) -> float:
    """Jobs per second of a following worker, from its start until the last one is told to be completed."""
    finished: list[float] = []
    worker = Worker(
        ledger,
        {effect.info.name: effect},
        WorkerOptions(claimant="bench", idle_exit_s=0.0, concurrency=concurrency),
        on_event=lambda event: finished.append(time.perf_counter()),
    )
    with as_in_a_following_worker():
        started = time.perf_counter()
        worker.run()
    assert ledger.counts()["completed"] == len(finished) == jobs
    return jobs / (finished[-1] - started)


def huey(folder: Path) -> float:
    """SqliteHuey's own consumer, one thread, its best settings; a task deletes its row before it runs."""
    from huey import SqliteHuey
    from huey.consumer import Consumer

    queue = SqliteHuey("bench", filename=str(folder / "huey.db"), fsync=True, results=False)
    done = threading.Semaphore(0)
    left = PEER_JOBS

    @queue.task()  # type: ignore[untyped-decorator, unused-ignore]
    def work(text: str) -> None:
        nonlocal left
        len(text.split())
        left -= 1
        if left == 0:
            done.release()

    with queue.storage.db(commit=True):
        pass
    for n in range(PEER_JOBS):
        work(TEXT.format(n=n))
    consumer = Consumer(
        queue,
        workers=1,
        worker_type="thread",
        periodic=False,
        initial_delay=0.001,
        max_delay=0.001,
        check_worker_health=False,
    )
    started = time.perf_counter()
    consumer.start()
    done.acquire()
    elapsed_s = time.perf_counter() - started
    consumer.stop(graceful=True)
    assert left == 0
    assert len(queue) == 0
    return PEER_JOBS / elapsed_s


def persist_queue(folder: Path) -> float:
    """SQLiteAckQueue: get, work, ack, one thread."""
    import persistqueue

    queue: Any = persistqueue.SQLiteAckQueue(str(folder / "persist"), auto_commit=True)
    for n in range(PEER_JOBS):
        queue.put(TEXT.format(n=n))
    started = time.perf_counter()
    for _ in range(PEER_JOBS):
        text = queue.get(block=False)
        len(text.split())
        queue.ack(text)
    elapsed_s = time.perf_counter() - started
    assert queue.size == 0
    return PEER_JOBS / elapsed_s


class Sleeper:
    """An acting effect that sleeps a millisecond."""

    info = EffectInfo("sleep", "sleeps", delivery="local")
    pure = False
    namespace = ""

    def validate(self, text: str) -> None:
        """Anything goes."""

    def outcome(self, text: str) -> dict[str, Any]:
        """Not a pure effect."""
        raise AssertionError("not pure")

    def apply(self, request: Any) -> dict[str, Any]:
        """Sleep."""
        time.sleep(0.001)
        return {}

    def reconcile(self, request: Any) -> Any:
        """Nobody to ask."""
        raise AssertionError("not probed")

    def close(self) -> None:
        """Nothing to close."""


def sleeping_threads(folder: Path) -> float:
    """Bare threads that only sleep."""
    left = iter(range(SLEEPS))

    def run() -> None:
        for _ in left:
            time.sleep(0.001)

    threads = [threading.Thread(target=run) for _ in range(8)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return SLEEPS / (time.perf_counter() - started)


def sleeping_jobs(folder: Path) -> float:
    """Eight slots and an effect that sleeps."""
    store = str(folder / "sleep.db")
    fill(store, SLEEPS, effect="sleep")
    with open_ledger(store) as ledger:
        return work_off(ledger, Sleeper(), SLEEPS, concurrency=8)


IDLE_S = 10.0


def idle_worker(folder: Path) -> tuple[float, int]:
    """The share of a core that an idle following worker takes, and its resident memory in KiB."""
    store = str(folder / "idle.db")
    fill(store, 1)
    worker = subprocess.Popen(
        [sys.executable, "-m", "fencepost.core.cli", "worker", "--store", store, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    time.sleep(1.0)
    before = cpu_s(worker.pid)
    time.sleep(IDLE_S)
    used = cpu_s(worker.pid) - before
    pages = int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1])
    worker.terminate()
    assert worker.wait() == 0
    return used / IDLE_S, pages * resource.getpagesize() // 1024


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


LATENCIES = 300


def latencies_ms(folder: Path) -> list[float]:
    """From just before the enqueue here to the start of the attempt in a worker process, in ms."""
    store = str(folder / "wake.db")
    fill(store, 1)
    effect = folder / "stamp.py"
    effect.write_text(
        "import time\n"
        "from fencepost.plugins import EffectInfo, hookimpl\n"
        "@hookimpl\ndef effect_info():\n    return EffectInfo('stamp', 'tells when it starts', delivery='local')\n"
        "@hookimpl\ndef effect_apply(request):\n    return {'ns': time.monotonic_ns()}\n"
    )
    worker = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fencepost.core.cli",
            "worker",
            "--store",
            store,
            "--follow",
            "--plugin",
            str(effect),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    found = []
    with open_ledger(store) as ledger:
        for n in range(LATENCIES):
            time.sleep(random.uniform(0.005, 0.03))
            sent = time.monotonic_ns()
            ledger.enqueue([NewJob(f"wake-{n}", "x", effect="stamp")])
            worker.stdout.readline()
            outcome: Any = ledger.receipts([f"wake-{n}"])[f"wake-{n}"].outcome
            found.append((outcome["ns"] - sent) / 1e6)
    worker.terminate()
    assert worker.wait() == 0
    return found


def verdict(ratio: float, bar: float) -> str:
    """How a ratio stands to its bar."""
    return f"{ratio:6.2f} (bar {bar:g}: {'pass' if ratio >= bar else 'MISS'})"


def main() -> None:
    """Measure everything, and print it."""
    rates = medians(
        {"floor": floor, "fencepost": fencepost, "huey": huey, "persist-queue": persist_queue}, SLICES
    )
    print(f"one worker process, {JOBS:,} jobs with `count`, SQLite, synchronous=FULL, medians of {SLICES}")
    for name, rate in rates.items():
        print(f"  {name:14} {rate:9,.0f} jobs/s")
    print(f"  of the raw floor          {verdict(rates['fencepost'] / rates['floor'], 0.6)}")
    best = max(rates["huey"], rates["persist-queue"])
    print(f"  of the better peer        {verdict(rates['fencepost'] / best, 5)}")
    sleeps = medians({"threads": sleeping_threads, "worker": sleeping_jobs}, SLICES)
    print(
        f"8 threads, an effect that sleeps 1 ms: {sleeps['worker']:,.0f} jobs/s, bare threads {sleeps['threads']:,.0f}"
    )
    print(f"  of bare threads           {verdict(sleeps['worker'] / sleeps['threads'], 0.85)}")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        share, memory_kib = idle_worker(Path(folder))
        print(
            f"idle worker: {share:.2%} of a core (bar 0.5%: {'pass' if share <= 0.005 else 'MISS'}), {memory_kib:,} KiB"
        )
        found = sorted(latencies_ms(Path(folder)))
    p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
    print(f"enqueue → start of the attempt in another process: p50 {p50:.2f} ms (bar 5: "
          f"{'pass' if p50 <= 5 else 'MISS'}), p99 {p99:.2f} ms, {len(found)} enqueues")  # fmt: skip


if __name__ == "__main__":
    main()
