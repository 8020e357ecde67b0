"""What a step of the sweep does; which step comes when is in ``sql/sweeping.py``."""

from __future__ import annotations

import json

from ...model.job import EXPIRED
from .claim import lanes
from .dead import bury, purge
from .transaction import Transaction


def purge_kept(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> int:
    """Purge dead jobs whose retention has ended; how many they were."""
    queues = [queue] if queue is not None else [name for (name,) in transaction.rows("queues_with_retention")]
    rows = transaction.rows("purgeable", {"queues": json.dumps(queues), "now_ms": now_ms, "limit": limit})
    purge(transaction, [key for (key,) in rows])
    return len(rows)


def bury_expired(transaction: Transaction, queue: str | None, now_ms: int, limit: int) -> int:
    """Bury jobs that have expired; how many they were."""
    served = lanes(transaction, None if queue is None else [queue], None)
    rows = transaction.rows("expired", {"lanes": json.dumps(served), "now_ms": now_ms, "limit": limit})
    bury(transaction, [key for (key,) in rows], error=EXPIRED, now_ms=now_ms)
    return len(rows)
