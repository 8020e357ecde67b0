"""The receiver as a server of its own, over the standard library: one thread for each connection."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import socketserver
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Final

from .protocol import Answer, problem
from .service import Receiver

IDLE_S: Final = 30.0
"""How long a connection may be silent, within a request too."""
LINGER_S: Final = 2.0
"""How long a sender whose body is not read may be silent before its connection is closed."""
MAX_DISCARDED: Final = 16 * 1024 * 1024

_log = logging.getLogger("fencepost.receiver")
_LENGTH: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


class Server(ThreadingHTTPServer):
    """Serves one receiver; ``serve_forever`` and ``shutdown`` are the standard library's."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, receiver: Receiver, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen at once; port 0 takes a free one."""
        self.receiver = receiver
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind, without the question for this machine's name that may hang for seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.server_name}]" if ":" in self.server_name else self.server_name
        return f"http://{host}:{self.server_port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ip_address(self.server_name.partition("%")[0]).is_loopback

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in the log what broke a connection."""
        _log.info("the connection from %s broke off", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Requests of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    # Head and body in one packet: in two, the second would wait 40 ms for the sender's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer a request of any method."""
        receiver = self.server.receiver
        headers = list(self.headers.items())
        answer = receiver.head(self.command, self.path.partition("?")[0], headers)
        length = self._length()
        if isinstance(length, Answer):
            self._respond_unread(length)
        elif length > receiver.max_body_bytes:
            self._respond_unread(answer or receiver.too_large())
        else:
            body = self.rfile.read(length)
            if len(body) < length:  # the sender has gone
                self.close_connection = True
                return
            self._respond(answer or receiver.deliver(headers, body))

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST

    def handle_expect_100(self) -> bool:
        """Ask for the body, unless the head already says that it is too large."""
        length = self._length()
        if isinstance(length, int) and length > self.server.receiver.max_body_bytes:
            self._respond_unread(self.server.receiver.too_large())
            return False
        return super().handle_expect_100()

    def _length(self) -> int | Answer:
        """How long the body is; or the answer to a request that does not say it clearly."""
        lengths = self.headers.get_all("Content-Length") or ["0"]
        if self.headers.get("Transfer-Encoding") is not None:
            return problem(411, "length-required", "Send a Content-Length; chunked bodies are not taken.")
        if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0].strip()):
            return problem(400, "malformed", "Content-Length must be one whole number.")
        return int(lengths[0])

    def _respond_unread(self, answer: Answer) -> None:
        """Answer at once, without waiting for the body, and end the connection.

        What the sender is still writing is then read and thrown away, within reason: if the connection were closed
        on it, its system would throw the answer away.
        """
        self.close_connection = True
        self._respond(answer)
        self.wfile.flush()
        with contextlib.suppress(OSError):  # the sender has gone, or is silent: it has its answer
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(LINGER_S)
            left = MAX_DISCARDED
            while left > 0 and (part := self.connection.recv(65_536)):
                left -= len(part)

    def _respond(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.all_headers():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses by itself (a line that is no HTTP) is a problem, too."""
        self.close_connection = True
        self.request_version = (
            self.protocol_version
        )  # a line that names none would be answered without a head
        self._respond(problem(code, "malformed", message or explain or "This is not HTTP."))

    def version_string(self) -> str:
        """What the header Server says."""
        return "fencepost-receiver"

    def log_message(self, format: str, *args: object) -> None:
        """One line for each request, for those who want to see them."""
        _log.debug("%s " + format, self.client_address[0], *args)
