"""What stands between a client and PostgreSQL in these tests: a wire that can be cut, and a transaction pooler."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

CHUNK: Final = 65536
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: a close is a reset."""


def dial(url: str) -> socket.socket:
    """A connection to the server of that URL, which names the folder of its socket, or a host."""
    parts = urlsplit(url)
    host = unquote(dict(parse_qsl(parts.query)).get("host") or parts.netloc.rpartition("@")[2])
    if host.startswith("/"):
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.5432")
        return server
    name, _, port = host.partition(":")
    return socket.create_connection((name or "127.0.0.1", int(port or 5432)))


def through(url: str, port: int) -> str:
    """The same database by way of a port of this machine."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    query = "&".join(pair for pair in parts.query.split("&") if pair and not pair.startswith("host="))
    return parts._replace(netloc=f"{user}@127.0.0.1:{port}", query=query).geturl()


class Door:
    """Listens on a port, and hands each connection to ``serve`` in a thread of its own."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._run(self._accept)

    def serve(self, client: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join()

    def hang_up(self) -> None:
        """End every connection."""
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def keep(self, opened: socket.socket) -> socket.socket:
        """Have it ended with the door."""
        self._sockets.append(opened)
        return opened

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._run(lambda client=client: self._serve(client))  # type: ignore[misc]

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), self.keep(client):
            self.serve(client)

    def _run(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()


class Wire(Door):
    """Passes bytes on until it is told to hold them, or to cut every connection; takes new ones unless cut."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.flowing = threading.Event()
        self.flowing.set()
        self._answered = threading.Event()
        self._cut_at: tuple[bytes, bool] | None = None
        self.cut_off = threading.Event()
        """Set when ``cut_at`` has come."""
        super().__init__()

    @property
    def url(self) -> str:
        """The server by way of this wire."""
        return through(self._url, self.port)

    def cut_at(self, request: bytes, *, let_through: bool) -> None:
        """Cut the connection that sends this next: before the server has it, or when it has, and its answer is lost."""
        self.cut_off.clear()
        self._cut_at = (request, let_through)

    def reset(self) -> None:
        """Reset every connection, as a router does that has lost its table."""
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.hang_up()

    def serve(self, client: socket.socket) -> None:
        with self.keep(dial(self._url)) as server:
            self._run(lambda: self._pass_back(server, client))
            with contextlib.suppress(OSError):
                self._pass_on(client, server)
            _end(server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        while data := client.recv(CHUNK):
            self.flowing.wait()
            if self._cut_at is not None and self._cut_at[0] in data:
                (_, let_through), self._cut_at = self._cut_at, None
                _end(client)
                if let_through:
                    self._answered.clear()
                    server.sendall(data)
                    self._answered.wait()  # whatever that commits is committed
                self.cut_off.set()
                return
            server.sendall(data)

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK):
                self._answered.set()
                self.flowing.wait()
                client.sendall(data)
        _end(client)


def _end(opened: socket.socket) -> None:
    with contextlib.suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def opened(door: Door) -> Iterator[Door]:
    try:
        yield door
    finally:
        door.close()
