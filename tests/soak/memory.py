"""Many jobs through one following worker: the memory that it takes must not grow with them."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

WORK = """
import sys, threading
from fencepost.core import NewJob, open_ledger
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker
from fencepost.plugins.manager import Plugins
from tests.soak.memory import resident_kib

store, jobs, mark = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
done = 0
at_mark = 0

def count(event):
    global done, at_mark
    done += 1
    if done == mark:
        at_mark = resident_kib()
    if done == jobs:
        worker.stop()

with open_ledger(store) as ledger:
    def produce():
        for start in range(0, jobs, 1000):
            ledger.enqueue(NewJob(f"j-{n}", f"text of job {n}") for n in range(start, start + 1000))
    worker = Worker(ledger, {"count": Plugins.load().choose("count")}, WorkerOptions(claimant="w"), on_event=count)
    threading.Thread(target=produce).start()
    worker.run()
print(done, at_mark, resident_kib())
"""


def resident_kib() -> int:
    """The memory that this process has resident now, in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def growth_kib(store: str, *, jobs: int, mark: int) -> int:
    """By how much a worker's memory grows between its ``mark``-th job and its last one."""
    ended = subprocess.run(
        [sys.executable, "-c", WORK, store, str(jobs), str(mark)],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
        timeout=600,
    )
    done, before, after = map(int, ended.stdout.split())
    assert done == jobs
    return after - before
