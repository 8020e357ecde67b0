"""Waiting for what can be observed: the one way in which tests wait for another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 60.0
"""Only a test that fails waits so long."""
PAUSE_S = 0.005


def until(condition: Callable[[], Any], what: str = "it") -> None:
    """Ask again and again until the condition holds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} never came true"
        time.sleep(PAUSE_S)
