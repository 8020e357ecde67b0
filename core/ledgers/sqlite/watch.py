"""Waking: ``PRAGMA data_version`` is the truth, the folder's events say when to look at it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from typing import Final

from ..folder_watch import FolderWatch
from .database import Database, Handle
from .errors import translate

SAFETY_POLL_S: Final = 0.5
"""How long the events are trusted: some file systems have none."""
POLL_S: Final = 0.005
"""Between two looks where another thread already listens to the events."""
RECHECK_S: Final = 0.1
"""How long after an event its commit may become visible: the log is written before it is synced."""
FIRST_PAUSE_S: Final = 0.000_1
PAUSE_GROWTH: Final = 1.1
"""Each pause is a tenth of the time since the event: so much later than it could the wait ends at most."""


class Watch:
    """Whether anything was committed since ``mark``, and the sleep until it was.

    The connection is its own: data_version tells of the commits of others only, so that those of this ledger's
    threads count too.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._start_anew()

    def _start_anew(self) -> None:
        """Nothing of the parent's is used after a fork, its locks included."""
        self._pid = os.getpid()
        self._folder = FolderWatch(os.path.dirname(os.path.realpath(self._database.path)))
        self._listening = threading.Lock()
        self._opening = threading.Lock()
        self._handle: Handle | None = None
        self._marked: int | None = None

    def mark(self) -> None:
        """What has been committed up to now is known."""
        if self._pid != os.getpid():
            self._start_anew()
        self._marked = self._version()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until there is a commit since the mark; False after ``timeout_s``. True where none was set.

        Raises:
            LedgerFailed: the file was removed or replaced.
        """
        deadline = time.monotonic() + timeout_s
        if self._pid != os.getpid():
            self._start_anew()
        if not self._listening.acquire(blocking=False):
            return self._look_until(deadline, pause_s=POLL_S, growth=1.0)
        try:
            self._folder.open()
            while not self._changed():
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                trust = time.monotonic() + min(left_s, SAFETY_POLL_S)
                self._folder.sleep(min(left_s, SAFETY_POLL_S))
                woken = time.monotonic()
                if woken < trust and self._look_until(
                    min(deadline, woken + RECHECK_S), pause_s=FIRST_PAUSE_S, growth=PAUSE_GROWTH
                ):
                    return True
            return True
        finally:
            self._listening.release()

    def close(self) -> None:
        """Give the events back."""
        self._folder.close()

    def _look_until(self, deadline: float, *, pause_s: float, growth: float) -> bool:
        while not self._changed():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(pause_s, left_s))
            pause_s *= growth
        return True

    def _changed(self) -> bool:
        self._database.check_file()
        return self._version() != self._marked

    def _version(self) -> int:
        """The data_version, which means something only beside another of the same connection."""
        while True:
            handle = self._handle
            if handle is None or not handle.open:
                handle = self._open()
            with handle.lock:
                if handle.open:
                    try:
                        return int(handle.connection.execute("PRAGMA data_version").fetchone()[0])
                    except sqlite3.Error as error:
                        raise translate(error, self._database.path) from error

    def _open(self) -> Handle:
        with self._opening:
            if self._handle is None or not self._handle.open:
                self._handle, self._marked = self._database.open_handle(), None
            return self._handle
