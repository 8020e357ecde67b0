"""What the processes of ``racing.py`` do: importable, because a spawned interpreter imports it by name."""

from __future__ import annotations

from threading import BrokenBarrierError
from typing import Protocol

from ..ledgers.open import open_ledger
from ..ledgers.protocol import Ledger
from .base import claim, enqueue, settlement

Handed = tuple[str, int]
"""A job's id, and the version it was claimed at."""

START_TIMEOUT_S = 60.0


class Start(Protocol):
    """A barrier, of threads or of processes."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the others."""


def join_start(start: Start) -> None:
    """Let all processes begin at the same moment, each with its modules loaded."""
    try:
        start.wait(START_TIMEOUT_S)
    except BrokenBarrierError as error:
        raise RuntimeError("the other processes did not start in time") from error


def drain(store: Ledger | str, batch: int, until_completed: int = 0) -> list[Handed]:
    """Claim and settle until nothing is ready, and return what was handed out here.

    Where ``until_completed`` is given, nothing ready is not the end, but that many completed jobs are.
    """
    if isinstance(store, str):
        with open_ledger(store) as ledger:
            return drain(ledger, batch, until_completed)
    handed: list[Handed] = []
    while True:
        claimed = claim(store, 0, limit=batch, lease_ms=600_000)
        if not claimed and store.counts()["completed"] >= until_completed:
            return handed
        handed += [(job.id, job.version) for job in claimed]
        settled = store.settle([settlement(job) for job in claimed], now_ms=1)
        assert all(item.completed for item in settled)


def enqueue_range(store: str, first: int, count: int) -> int:
    """Enqueue that many jobs one by one, and return how many were new."""
    with open_ledger(store) as ledger:
        for n in range(first, first + count):
            enqueue(ledger, f"job-{n}")
        return count
