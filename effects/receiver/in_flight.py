"""The keys of deliveries that this process is working on: a second delivery of one is answered 409 at once."""

from __future__ import annotations

import threading
from dataclasses import replace

from .rules import Known


class InFlight:
    """The keys whose work is in progress. Whoever takes a key first has it until it releases it."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._lock = threading.Lock()

    def take(self, key: str, *, fence: int, digest: str) -> Known | None:
        """Take the key and return None; where another delivery has it, return what is known of that one."""
        with self._lock:
            known = self._known.get(key)
            if known is None:
                self._known[key] = Known(fence=fence, digest=digest, in_progress=True)
            elif fence > known.fence and digest == known.digest:
                self._known[key] = replace(known, fence=fence)
            return known

    def release(self, key: str) -> int:
        """Release the key, and return the highest fence that was sent with it meanwhile."""
        with self._lock:
            return self._known.pop(key).fence

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._known
