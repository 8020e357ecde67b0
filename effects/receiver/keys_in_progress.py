"""The keys that this process is working on, so that a second delivery is told to wait instead of made to."""

from __future__ import annotations

import threading
from dataclasses import replace

from .rules import Known


class KeysInHand:
    """Which keys are being worked on; the first one to take a key has it until it lets go."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._lock = threading.Lock()

    def take(self, key: str, *, fence: int, digest: str) -> Known | None:
        """Take the key, and return None; or what is known of it, if somebody has it."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                self._known[key] = Known(fence=fence, digest=digest, in_progress=True)
            elif fence > known.fence and digest == known.digest:
                self._known[key] = replace(known, fence=fence)
            return known

    def let_go(self, key: str) -> int:
        """Give the key back; the highest fence that asked for it meanwhile."""
        with self._lock:
            return self._known.pop(key).fence

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._known
