"""The sweep: retention first, then expiry, in steps that each commit."""

from __future__ import annotations

from typing import Final

from ...job import EXPIRED
from .arrays import text_array
from .burying import bury, purge
from .transaction import Transaction

STEP: Final = 1_000


def purge_step(transaction: Transaction, queue: str | None, now_ms: int) -> int:
    """Purge up to a thousand dead jobs whose retention has ended; how many they were."""
    queues = [queue] if queue is not None else [name for (name,) in transaction.rows("queues_with_retention")]
    rows = transaction.rows("purgeable", {"queues": text_array(queues), "now_ms": now_ms, "limit": STEP})
    purge(transaction, [id for (id,) in rows])
    return len(rows)


def expire_step(transaction: Transaction, queue: str | None, now_ms: int) -> int:
    """Bury up to a thousand jobs that have expired; how many they were."""
    rows = transaction.rows("expired", {"queue": queue, "now_ms": now_ms, "limit": STEP})
    bury(transaction, [id for (id,) in rows], error=EXPIRED, now_ms=now_ms)
    return len(rows)
