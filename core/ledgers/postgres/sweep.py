"""What a step of the sweep does; which step comes when is in ``sql/sweeping.py``."""

from __future__ import annotations

from ...model.job import EXPIRED
from .arrays import text_array
from .dead import bury, purge
from .transaction import Transaction


def purge_kept(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> int:
    """Purge dead jobs whose retention has ended; how many they were."""
    queues = [queue] if queue is not None else [name for (name,) in transaction.rows("queues_with_retention")]
    rows = transaction.rows("purgeable", {"queues": text_array(queues), "now_ms": now_ms, "limit": limit})
    purge(transaction, [id for (id,) in rows])
    return len(rows)


def bury_expired(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> int:
    """Bury jobs that have expired; how many they were."""
    rows = transaction.rows("expired", {"queue": queue, "now_ms": now_ms, "limit": limit})
    bury(transaction, [id for (id,) in rows], error=EXPIRED, now_ms=now_ms)
    return len(rows)
