"""Worker processes for the benches, started as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Self

from fencepost.core import NewJob
from fencepost.core.ledgers.postgres import PostgresLedger

PATIENCE_S: Final = 60.0


class Working:
    """A following worker process, as a user starts one, and the events that it prints."""

    def __init__(self, url: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fencepost.core.cli", "worker", "--store", url, "--follow", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.events: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        assert error is not None or status == 0, f"the worker has ended with {status}"


def await_ready(url: str, workers: Sequence[Working]) -> None:
    """Give the workers small jobs until each of them has done one."""
    deadline = time.monotonic() + PATIENCE_S
    with PostgresLedger(url) as ledger:
        for turn in count(1):
            if not any(worker.events.empty() for worker in workers):
                return
            assert time.monotonic() < deadline, "a worker has not come to work"
            ledger.enqueue([NewJob(f"first-{turn}", "ready?")])
            time.sleep(0.05)


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
