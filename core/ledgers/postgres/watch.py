"""Waking: LISTEN on a connection of its own; where that cannot be had, the server's snapshot is looked at instead.

A wake-up is a hint. One that is lost costs a delay until the next look, never a job.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from typing import Final

import psycopg

from .database import Database
from .transaction import Connection

_log = logging.getLogger("fencepost.postgres")

POLL_S: Final = 0.1
"""Between two looks where there is no listening."""
SLICE_S: Final = 0.5
"""How long one thread listens before it looks whether the ledger was closed."""
TURN_S: Final = 0.02
"""How soon a waiting thread takes over the listening from one that has left."""
FIRST_BACKOFF_S: Final = 0.1
LONGEST_BACKOFF_S: Final = 30.0
SHORT_SESSION_S: Final = 5.0
"""A session that ends sooner after it began to listen is a fault, and not one that was idle for too long."""

_INHERITED: Final[list[Connection]] = []
"""Connections that came over a fork. A child must never close them: they are its parent's."""


class Watch:
    """Whether anything that others may wait for was committed since ``mark``, and the sleep until it was."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._start_anew()

    def _start_anew(self) -> None:
        """Nothing of the parent's is used after a fork, its locks included."""
        self._pid = os.getpid()
        self._connection: Connection | None = None
        self._listening = threading.Lock()
        self._news = threading.Condition()
        self._heard = 0
        self._marked: int | None = None
        self._snapshot: str | None = None
        self._failures = 0
        self._listen_at = 0.0
        self._listening_since = 0.0
        self._closed = False

    def mark(self) -> None:
        """Note that the caller knows of every notification that has arrived up to now."""
        self._check_process()
        if self._connection is not None and self._listening.acquire(blocking=False):
            try:
                # Also because notifications that nobody fetches pile up in the server.
                if (connection := self._connection) is not None and _readable(connection):
                    self._hear(connection, 0.0)
            finally:
                self._listening.release()
        self._marked = self._heard

    def saw(self, snapshot: str) -> None:
        """The claim sees what this snapshot does."""
        self._snapshot = snapshot

    def wait(self, timeout_s: float) -> bool:
        """Sleep until something was heard since the mark; False after ``timeout_s``. True where none was set.

        Raises:
            LedgerError: there is no listening, and the server cannot be asked.
        """
        self._check_process()
        deadline = time.monotonic() + timeout_s
        while self._marked == self._heard:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            if not self._listening.acquire(blocking=False):
                with self._news:
                    self._news.wait_for(lambda: self._marked != self._heard, min(left_s, TURN_S))
                continue
            try:
                connection = self._listener()
                if connection is not None:
                    self._hear(connection, min(left_s, SLICE_S))
                else:
                    time.sleep(min(left_s, POLL_S))
                    self._look()
            finally:
                self._listening.release()
        return True

    def close(self) -> None:
        """Stop listening; wait first for the thread that listens now."""
        if self._pid == os.getpid():
            self._closed = True
            with self._listening:
                self._drop()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            if self._connection is not None:
                _INHERITED.append(self._connection)
            self._start_anew()

    def _tell(self) -> None:
        with self._news:
            self._heard += 1
            self._news.notify_all()

    def _listener(self) -> Connection | None:
        """The connection that listens; None where there is to be none, or none can be had now."""
        if self._connection is not None:
            return self._connection
        if self._closed or not self._database.address.listen or time.monotonic() < self._listen_at:
            return None
        try:
            self._connection = self._database.connect()
            self._connection.execute(self._database.statements["listen"])
        except psycopg.Error as error:
            self._lost(error)
            return None
        self._failures = 0
        self._listening_since = time.monotonic()
        self._look()  # what was committed before it listened was not heard
        return self._connection

    def _hear(self, connection: Connection, timeout_s: float) -> None:
        try:
            if [*connection.notifies(timeout=timeout_s, stop_after=1)]:
                self._tell()
        except psycopg.Error as error:
            if time.monotonic() - self._listening_since < SHORT_SESSION_S:
                self._lost(error)
            else:
                # A server may end sessions that are idle for long. The next wait listens again, and warns if it cannot.
                _log.info("%s: the session that listened has ended: %s", *self._told(error))
                self._drop()
            self._tell()

    def _look(self) -> None:
        """Wake the waiter if any transaction of the server has begun or ended since the claim.

        The transactions of other ledgers and programs count, too, so that many of these wakes find no new job.
        """
        with self._database.read() as transaction:
            if transaction.value("snapshot") != self._snapshot:
                self._tell()

    def _lost(self, error: psycopg.Error) -> None:
        if not self._failures:
            _log.warning("%s: not listening for new jobs until it can be done again: %s", *self._told(error))
        backoff_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(self._failures, 10))
        self._failures += 1
        self._listen_at = time.monotonic() + backoff_s
        self._drop()

    def _told(self, error: psycopg.Error) -> tuple[str, str]:
        """Where the ledger is, and what the error says, for the log."""
        address = self._database.address
        return address.location, address.hide_secrets(" ".join(str(error).split()))

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _readable(connection: Connection) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
