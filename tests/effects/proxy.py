"""An HTTP proxy in front of a receiver, on a real socket, that holds or drops deliveries and their answers."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TIMEOUT_S = 60.0


class Proxy(ThreadingHTTPServer):
    """Passes on every request; deliveries and their answers only while the gates are open.

    ``arrived`` is set when a delivery has arrived here, ``answered`` when the receiver has answered it.
    """

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream.removeprefix("http://")
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.arrived, self.answered = threading.Event(), threading.Event()
        self.requests_pass, self.answers_pass = threading.Event(), threading.Event()
        self.requests_pass.set()
        self.answers_pass.set()
        self.drops_answers = False
        self.statuses: list[int] = []
        """What the receiver answered to each delivery."""
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        """Let everything pass, and end."""
        self.requests_pass.set()
        self.answers_pass.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender or a receiver that was killed is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        proxy, delivers = self.server, self.command == "POST"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if delivers:
            proxy.arrived.set()
            assert proxy.requests_pass.wait(TIMEOUT_S)
        upstream = http.client.HTTPConnection(proxy.upstream, timeout=TIMEOUT_S)
        upstream.request(self.command, self.path, body, dict(self.headers.items()))
        response = upstream.getresponse()
        answer = response.read()
        upstream.close()
        if delivers:
            proxy.statuses.append(response.status)
            proxy.answered.set()
            assert proxy.answers_pass.wait(TIMEOUT_S)
        self.close_connection = True
        if delivers and proxy.drops_answers:
            return
        self.send_response_only(response.status)
        for name, value in [*response.getheaders(), ("Connection", "close")]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass
