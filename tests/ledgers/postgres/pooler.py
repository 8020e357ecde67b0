"""A transaction pooler, as strict as one can be: each transaction gets the session that has rested longest.

What a session remembers is discarded after every transaction, so that whoever relies on it fails at once. It speaks
as much of the protocol as it must: https://www.postgresql.org/docs/current/protocol-flow.html
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import struct
from typing import Final
from urllib.parse import urlsplit

from tests.ledgers.postgres.wire import CHUNK, Door, dial, through

SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
DISCARD: Final = b"DISCARD ALL\0"
SYNCS: Final = (b"Q", b"S")
"""Requests that the server answers with "ready for query", when all before them is done."""
READY: Final = b"Z"
IDLE: Final = b"I"


class Messages:
    """Divides the bytes that one side sends into its messages, each of a type and a body."""

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        self.rest += data
        found = []
        while len(self.rest) >= 5 and len(self.rest) > (end := struct.unpack("!i", self.rest[1:5])[0]):
            found.append((self.rest[:1], self.rest[5 : end + 1]))
            self.rest = self.rest[end + 1 :]
        return found


class Session:
    """One connection to the server, which clients take in turns."""

    def __init__(self, url: str) -> None:
        self.socket = dial(url)
        user = urlsplit(url).netloc.rpartition("@")[0].partition(":")[0]
        database = urlsplit(url).path.strip("/")
        names = f"user\0{user}\0database\0{database}\0\0".encode()
        self.socket.sendall(struct.pack("!ii", 8 + len(names), 196608) + names)
        self.greeting = self._until_ready()
        """What the server said of itself."""

    def discard(self) -> None:
        """Forget everything that outlives a transaction."""
        self.socket.sendall(b"Q" + struct.pack("!i", 4 + len(DISCARD)) + DISCARD)
        self._until_ready()

    def _until_ready(self) -> bytes:
        messages, said = Messages(), b""
        while True:
            data = self.socket.recv(CHUNK)
            assert data, "the server has ended the session"
            said += data
            if any(kind == READY for kind, _ in messages.feed(data)):
                return said


class Pooler(Door):
    """A few sessions for any number of clients."""

    def __init__(self, url: str, sessions: int = 3) -> None:
        self._url = url
        self._rested: queue.Queue[Session] = queue.Queue()
        for _ in range(sessions):
            self._rested.put(Session(url))
        self.transactions = 0
        super().__init__()

    @property
    def url(self) -> str:
        """The server by way of this pooler."""
        return through(self._url, self.port)

    def close(self) -> None:
        super().close()
        while not self._rested.empty():
            self._rested.get().socket.close()

    def serve(self, client: socket.socket) -> None:
        while _startup(client) in (SSL_REQUEST, GSS_REQUEST):
            client.sendall(b"N")
        session = self._rested.get()
        client.sendall(session.greeting)
        self._rested.put(session)
        while data := client.recv(CHUNK):
            if data[:1] == b"X":
                return
            self._transaction(client, data)

    def _transaction(self, client: socket.socket, data: bytes) -> None:
        session = self._rested.get()
        self.transactions += 1
        try:
            _relay(client, session.socket, data)
            session.discard()
        except OSError:
            # The client went away in the middle of it: so does the session, and what it was about.
            session.socket.close()
            session = Session(self._url)
            raise
        finally:
            self._rested.put(session)


def _relay(client: socket.socket, server: socket.socket, data: bytes) -> None:
    """Pass requests and answers until every request is answered and no transaction is open."""
    requests, answers = Messages(), Messages()
    due, status = 0, b""
    while True:
        if data:
            due += sum(kind in SYNCS for kind, _ in requests.feed(data))
            server.sendall(data)
        readable, _, _ = select.select([client, server], [], [])
        if server in readable:
            answer = server.recv(CHUNK)
            if not answer:
                raise OSError("the server has ended the session")
            for kind, body in answers.feed(answer):
                if kind == READY:
                    due, status = due - 1, body
            client.sendall(answer)
            if not (due or requests.rest or answers.rest) and status == IDLE:
                return
        data = b""
        if client in readable:
            data = client.recv(CHUNK)
            if not data:
                raise OSError("the client has gone")


def _startup(client: socket.socket) -> int:
    """The first message has no type; its code."""
    with contextlib.closing(client.dup()) as source:
        head = source.recv(8, socket.MSG_WAITALL)
        if len(head) < 8:
            raise OSError("the client has gone")
        length, code = struct.unpack("!ii", head)
        source.recv(length - 8, socket.MSG_WAITALL)
    return int(code)
