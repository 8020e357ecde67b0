"""A process that forks while another thread of it is in the ledger: the child waits for nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FORKED = """
import os, sys, threading
from fencepost.core import NewJob
from fencepost.core.ledgers.directory import DirectoryLedger

ledger = DirectoryLedger(sys.argv[1], lock_timeout_s=5)
ledger.enqueue([NewJob("first", "text")])
stop = threading.Event()

def enqueue():
    number = 0
    while not stop.is_set():
        number += 1
        ledger.enqueue([NewJob(f"job-{number}", "text")])

thread = threading.Thread(target=enqueue)
thread.start()
statuses = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        ok = ledger.get_job("first").state == "queued" and ledger.counts()["queued"] >= 1
        os._exit(0 if ok else 1)
    statuses.append(os.waitpid(child, 0)[1])
stop.set()
thread.join()
assert statuses == [0] * 10, statuses
"""


def test_a_child_takes_over_neither_the_lock_nor_a_change_that_was_under_way(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "store")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
