"""Waking when something changes in a folder: inotify where the system has it, else a short sleep."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from inotify_simple import INotify

FALLBACK_POLL_S: Final = 0.02


class FolderWatch:
    """Sleeps until something changes in the folder. An event is a hint: look at the truth afterwards.

    Events that come between two calls are not lost: the next call returns at once.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._inotify: INotify | None = None
        self._pid = 0

    def open(self) -> bool:
        """Begin to watch; call it before looking at the truth, so that no change falls in between.

        False: the system has no watches (left), and ``sleep`` only waits a moment.
        """
        return self._opened() is not None

    def sleep(self, timeout_s: float) -> None:
        """Return after a change in the folder, or after ``timeout_s``."""
        inotify = self._opened()
        if inotify is None:
            time.sleep(min(timeout_s, FALLBACK_POLL_S))
        else:
            inotify.read(timeout=max(1, round(timeout_s * 1_000)))

    def close(self) -> None:
        """Give the descriptor back; a later ``sleep`` opens it again."""
        with self._lock:
            if self._inotify is not None and self._pid == os.getpid():
                self._inotify.close()
            self._inotify = None

    def _opened(self) -> INotify | None:
        with self._lock:
            # A descriptor that came over a fork is shared: reading it would take the parent's events.
            if self._inotify is not None and self._pid == os.getpid():
                return self._inotify
            try:
                from inotify_simple import INotify, flags
            except ImportError:
                return None
            try:
                inotify = INotify()
                inotify.add_watch(self._folder, flags.MOVED_TO | flags.CREATE | flags.MODIFY)
            except OSError:
                return None  # no watches left, or a file system without them: polling does
            self._inotify, self._pid = inotify, os.getpid()
            return inotify
