"""Receivers that keep all of the contract but one thing; each as somebody might really build it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fencepost.effects.receiver import (
    WELL_KNOWN,
    Answer,
    Decision,
    Known,
    Malformed,
    decide,
    problem,
    read_delivery,
)
from fencepost.effects.receiver.protocol import (
    declaration,
    done,
    receipt,
    refusal,
    replayed,
)


class Right:
    """Keeps the contract, in memory; what is wrong in the others is what they override."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.known: dict[str, Known] = {}
        self.numbers = 0

    def work(self) -> str:
        self.numbers += 1
        return json.dumps({"number": self.numbers})

    def declare(self) -> Answer:
        return declaration(None)

    def look_up(self, key: str) -> Answer:
        known = self.known.get(key)
        return problem(404, "unknown-key", "Unknown.") if known is None else receipt(known.answer or "")

    def decide(self, known: Known | None, **given: Any) -> Decision:
        return decide(known, **given)

    def replay(self, known: Known) -> Answer:
        return replayed(known.answer or "")

    def deliver(self, headers: list[tuple[str, str]], body: bytes) -> Answer:
        try:
            delivery = read_delivery(headers, body)
        except Malformed as error:
            return self.malformed(error, headers)
        with self.lock:
            known = self.known.get(delivery.key)
            decision = self.decide(known, fence=delivery.fence, digest=delivery.digest)
            if decision is Decision.DO:
                answer = self.work()
                self.known[delivery.key] = Known(delivery.fence, delivery.digest, answer)
                return done(answer)
            if decision is Decision.REPLAY:
                assert known is not None
                self.known[delivery.key] = Known(delivery.fence, known.digest, known.answer)
                return self.replay(known)
        return refusal(decision)

    def malformed(self, error: Malformed, headers: list[tuple[str, str]]) -> Answer:
        return problem(400, "malformed", str(error))


class ForgetsKeys(Right):
    """Does the work for whatever comes in, as most endpoints do."""

    def decide(self, known: Known | None, **given: Any) -> Decision:
        return Decision.DO


class IgnoresFences(Right):
    """Knows keys, as many APIs do, and has never heard of fences."""

    def decide(self, known: Known | None, *, fence: int, digest: str) -> Decision:
        return decide(known, fence=2**60, digest=digest)


class IgnoresTheBody(Right):
    """Looks at the key alone: another body is told that it was done."""

    def decide(self, known: Known | None, *, fence: int, digest: str) -> Decision:
        return decide(known, fence=fence, digest=known.digest if known and known.digest else digest)


class LooksBeforeItLeaps(Right):
    """Looks whether the key is there, then does the work, and nothing holds others off in between."""

    def __init__(self) -> None:
        super().__init__()
        self.together = threading.Barrier(2)

    def deliver(self, headers: list[tuple[str, str]], body: bytes) -> Answer:
        delivery = read_delivery_or_none(headers, body)
        if delivery is None or delivery.key in self.known:
            return super().deliver(headers, body)
        try:
            # Two that have both looked go on together; a sender that is alone goes on soon.
            self.together.wait(0.5)
        except threading.BrokenBarrierError:
            self.together.reset()
        with self.lock:
            answer = self.work()
            self.known[delivery.key] = Known(delivery.fence, delivery.digest, answer)
            return done(answer)


class AnswersAnew(Right):
    """Does the work once, and says something else each time."""

    def replay(self, known: Known) -> Answer:
        return replayed(self.work())


class TakesAnything(Right):
    """Makes up a key where there is none, and does not look at the digest."""

    def malformed(self, error: Malformed, headers: list[tuple[str, str]]) -> Answer:
        return done(self.work())


class CannotBeAsked(Right):
    """Has no questions by key, and its errors are plain pages."""

    def declare(self) -> Answer:
        return Answer(404, b"not found", (("Content-Type", "text/plain"),))

    def look_up(self, key: str) -> Answer:
        return Answer(404, b"not found", (("Content-Type", "text/plain"),))


def read_delivery_or_none(headers: list[tuple[str, str]], body: bytes) -> Any:
    try:
        return read_delivery(headers, body)
    except Malformed:
        return None


@contextmanager
def serving(receiver: Right) -> Iterator[str]:
    """Its URL, while it is served."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command != "GET":
                answer = receiver.deliver(list(self.headers.items()), body)
            elif self.path == WELL_KNOWN:
                answer = receiver.declare()
            else:
                answer = receiver.look_up(self.path.rpartition("/")[2])
            self.send_response(answer.status)
            for name, value in answer.all_headers():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
