"""A receiver on a real socket that says what a test tells it to say, right or wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WELL_KNOWN = "/.well-known/fencepost-receiver"


@dataclass
class Said:
    """One answer."""

    status: int
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def content(self) -> bytes:
        """What goes over the wire."""
        return json.dumps(self.document).encode() if self.body is None else self.body


@dataclass
class Seen:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Scripted(ThreadingHTTPServer):
    """Answers deliveries, questions by key and the question for the declaration as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/orders"
        self.declaration = Said(200, {"fencepost_receiver": 1, "keys_kept_s": None})
        self.receipt = Said(404)
        self.delivery = Said(201, {"number": 1})
        self.seen: list[Seen] = []

    def deliveries(self) -> list[Seen]:
        """What was sent to be done."""
        return [seen for seen in self.seen if seen.method != "GET"]

    def asked(self) -> list[str]:
        """The paths that were asked for."""
        return [seen.path for seen in self.seen if seen.method == "GET"]


class _Handler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append(Seen(self.command, self.path, headers, body))
        if self.command != "GET":
            said = self.server.delivery
        elif self.path.endswith(WELL_KNOWN):
            said = self.server.declaration
        else:
            said = self.server.receipt
        content = said.content()
        self.send_response(said.status)
        for name, value in {"Content-Length": str(len(content)), **said.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_PATCH = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def scripted() -> Iterator[Scripted]:
    """Serves one."""
    with Scripted() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
