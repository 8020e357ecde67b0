"""The two clocks: integer milliseconds since the Unix epoch, from the wall or from a number."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]


def wall_ms() -> int:
    """Milliseconds since the Unix epoch, rounded down."""
    return time.time_ns() // 1_000_000


def logical(now_ms: int) -> Clock:
    """A clock that always shows ``now_ms``: for tests and for ``--now-ms``."""
    return lambda: now_ms
