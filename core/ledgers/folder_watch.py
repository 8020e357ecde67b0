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
        self._sleepers = 0
        self._closed = False

    def open(self) -> None:
        """Begin to watch; call it before looking at the truth, so that no change falls in between."""
        with self._lock:
            self._opened()

    def sleep(self, timeout_s: float) -> None:
        """Return after a change in the folder, or after ``timeout_s``; without watches after a moment."""
        with self._lock:
            inotify = self._opened()
            self._sleepers += 1
        try:
            if inotify is None:
                time.sleep(min(timeout_s, FALLBACK_POLL_S))
            else:
                inotify.read(timeout=max(1, round(timeout_s * 1_000)))
        finally:
            with self._lock:
                self._sleepers -= 1
                self._release_if_over()

    def close(self) -> None:
        """Give the descriptor back for good, as soon as nobody sleeps on it."""
        with self._lock:
            self._closed = True
            self._release_if_over()

    def _release_if_over(self) -> None:
        if self._closed and not self._sleepers and self._inotify is not None:
            if self._pid == os.getpid():
                self._inotify.close()
            self._inotify = None

    def _opened(self) -> INotify | None:
        # A descriptor that came over a fork is shared: reading it would take the parent's events.
        if self._closed or (self._inotify is not None and self._pid == os.getpid()):
            return self._inotify
        try:
            from inotify_simple import INotify, flags
        except (ImportError, OSError):
            return None  # not installed, or no descriptor is left to read it with: polling does
        if self._pid != os.getpid():
            self._sleepers, self._pid = 0, os.getpid()  # the others are the parent's threads
        try:
            inotify = INotify()
        except OSError:
            return None  # none left: polling does
        try:
            inotify.add_watch(self._folder, flags.MOVED_TO | flags.CREATE | flags.MODIFY)
        except OSError:
            inotify.close()
            return None  # no watches left, a file system without them, or no such folder
        self._inotify = inotify
        return inotify
