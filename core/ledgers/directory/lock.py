"""The lock that every read-modify-write of the directory ledger holds: flock(2) on ``ledger.lock``."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Iterator
from typing import Final

from filelock import FileLock, Timeout

from ...errors import LedgerBusy, LedgerCorrupt, LedgerFailed
from .files import engine_errors

POLL_S: Final = 0.001
"""How often a waiting process asks again; the lock is held for about as long."""

_NO_FLOCK: Final = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})


class LedgerLock:
    """Excludes other processes by flock(2), and other threads of this one by a lock in front of it."""

    def __init__(self, path: str, *, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._threads = threading.Lock()
        # No soft fallback: a file whose existence is the lock would outlive a killed owner.
        self._file = FileLock(
            path, mode=0o600, thread_local=False, poll_interval=POLL_S, fallback_to_soft=False
        )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for the block.

        Raises:
            LedgerBusy: it was not had in time.
            LedgerFailed: the file system has no flock(2).
        """
        started = time.monotonic()
        if not self._threads.acquire(timeout=self._timeout_s):
            raise self._busy()
        try:
            left_s = max(0.0, self._timeout_s - (time.monotonic() - started))
            self._acquire(left_s)
            try:
                yield
            finally:
                self._file.release()
        finally:
            self._threads.release()

    def _acquire(self, timeout_s: float) -> None:
        with engine_errors(self._path):
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(os.lstat(self._path).st_mode):
                    raise LedgerCorrupt(f"{self._path}: not a regular file; move it away")
            try:
                self._file.acquire(timeout=timeout_s)
            except Timeout as error:
                raise self._busy() from error
            except NotImplementedError as error:
                raise self._no_flock() from error
            except OSError as error:
                if error.errno in _NO_FLOCK:
                    raise self._no_flock() from error
                raise

    def _busy(self) -> LedgerBusy:
        return LedgerBusy(
            f"{self._path}: another process held the lock for {self._timeout_s:g} s; try again, and look for "
            "a stopped process if this goes on"
        )

    def _no_flock(self) -> LedgerFailed:
        return LedgerFailed(
            f"{self._path}: this file system has no flock(2), which a directory ledger needs; put the store on "
            "a local file system, or use PostgreSQL"
        )
