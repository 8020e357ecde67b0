"""The directory ledger beside the least that the disk must do for the same jobs, in the same run.

python -m tests.bench.bench_directory
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from fencepost.core import NewJob, open_ledger
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker
from fencepost.plugins.manager import Plugins

from tests.bench.harness import medians

JOBS = 2_000
SLICES = 9
BAR = 0.7
TEXT = "a few words for job {n}, as short as most are"


def floor(folder: Path, jobs: int) -> float:
    """Jobs a second of the floor.

    For each job: write, fsync, rename and folder fsync of a file of jobs.json's size; one read of the input; write,
    fsync and link of the receipt.
    """
    store = folder / "floor"
    make_store(store, jobs)
    table = (store / "jobs.json").read_bytes()
    names = sorted(os.listdir(store / "inputs"))
    descriptor = os.open(store, os.O_RDONLY)
    started = time.perf_counter()
    for name in names:
        (store / "inputs" / name).read_bytes()
        receipt = json.dumps({"id": name, "input_sha256": "0" * 64, "bytes": 1, "words": 1}).encode()
        write_durably(store / "effects" / ".temporary", receipt)
        os.link(store / "effects" / ".temporary", store / "effects" / name)
        os.unlink(store / "effects" / ".temporary")
        write_durably(store / ".temporary", table)
        os.rename(store / ".temporary", store / "jobs.json")
        os.fsync(descriptor)
    elapsed_s = time.perf_counter() - started
    os.close(descriptor)
    assert len(os.listdir(store / "effects")) == jobs
    return jobs / elapsed_s


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and fsync it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)


def make_store(path: Path, jobs: int) -> None:
    """A store with so many queued jobs."""
    with open_ledger(path) as ledger:
        ledger.enqueue(NewJob(f"job-{n}", TEXT.format(n=n)) for n in range(jobs))


def fencepost(folder: Path, jobs: int, *, bounded: bool) -> float:
    """Jobs a second of a real worker with the default effect, from the first claim to the last completion."""
    store = folder / ("bounded" if bounded else "following")
    make_store(store, jobs)
    plugins = Plugins.load()
    options = (
        WorkerOptions(claimant="bench", max_jobs=jobs)
        if bounded
        else WorkerOptions(claimant="bench", idle_exit_s=0.0)
    )
    events: list[object] = []
    with open_ledger(store) as ledger:
        worker = Worker(ledger, {"count": plugins.choose("count")}, options, on_event=events.append)
        started = time.perf_counter()
        worker.run()
        elapsed_s = time.perf_counter() - started
        assert ledger.counts()["completed"] == len(events) == len(os.listdir(store / "effects")) == jobs
    return jobs / elapsed_s


def main() -> None:
    """Measure in turns, and print the medians."""
    measures: dict[str, Callable[[Path], float]] = {
        "floor": lambda folder: floor(folder, JOBS),
        "bounded": lambda folder: fencepost(folder, JOBS, bounded=True),
        "following": lambda folder: fencepost(folder, JOBS, bounded=False),
    }
    rates = medians(measures, SLICES)
    print(
        f"directory ledger, {JOBS:,} jobs through one worker (count, receipts written), medians of {SLICES}"
    )
    for name, rate in rates.items():
        ratio = rate / rates["floor"]
        verdict = (
            ""
            if name == "floor"
            else f"   {ratio:5.2f} of the floor (bar {BAR}: {'pass' if ratio >= BAR else 'MISS'})"
        )
        print(f"  {name:10} {rate:8,.0f} jobs/s{verdict}")


if __name__ == "__main__":
    main()
