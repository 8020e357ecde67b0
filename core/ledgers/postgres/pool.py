"""The connections of one process to one ledger: made when they are needed, used again, and limited in number.

A pool of our own, because psycopg's makes connections in threads of its own: a server that is down shows as a
time-out without its reason, and threads do not live on in a forked child.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Final

from psycopg.pq import TransactionStatus

from ...errors import LedgerBusy, LedgerFailed
from .transaction import Connection

_INHERITED: Final[list[list[Connection]]] = []
"""Connections that came over a fork. A child must never close them: they are its parent's."""


class Pool:
    """Takes out and puts back; the connection that was used last is the first to be used again."""

    def __init__(
        self, connect: Callable[[], Connection], *, location: str, most: int, timeout_s: float
    ) -> None:
        self._connect = connect
        self._location = location
        self._most = most
        self._timeout_s = timeout_s
        self._closed = False
        self._start_anew()

    def _start_anew(self) -> None:
        self._pid = os.getpid()
        self._idle: list[Connection] = []
        self._room = threading.BoundedSemaphore(self._most)

    def take(self) -> Connection:
        """A connection, which is to be ``put`` back.

        Raises:
            LedgerBusy: all were taken for too long.
            psycopg.OperationalError: none could be made.
        """
        if self._pid != os.getpid():
            _INHERITED.append(self._idle)
            self._start_anew()
        if self._closed:
            raise LedgerFailed(f"{self._location}: this ledger was closed; open it anew")
        if not self._room.acquire(timeout=self._timeout_s):
            raise LedgerBusy(
                f"{self._location}: all {self._most} connections were in use for {self._timeout_s:g} s; "
                "try again, or allow more with max_connections"
            )
        try:
            return self._rested() or self._connect()
        except BaseException:
            self._room.release()
            raise

    def put(self, connection: Connection) -> None:
        """Let others use it; one that is not at rest is closed."""
        if self._closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        self._room.release()

    def close(self) -> None:
        """Close all: those that are taken when they are put back."""
        self._closed = True
        if self._pid == os.getpid():
            while (connection := self._pop()) is not None:
                connection.close()

    def _rested(self) -> Connection | None:
        """One that rests and is still connected."""
        while (connection := self._pop()) is not None:
            if not _heard_from(connection):
                return connection
            connection.close()
        return None

    def _pop(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None


def _heard_from(connection: Connection) -> bool:
    """Whether the server has said something unasked: nearly always that it has ended the session."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
