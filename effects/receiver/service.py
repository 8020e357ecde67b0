"""The receiver as a whole: from a request's head and body to its answer, whatever speaks HTTP around it."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from .in_flight import InFlight
from .protocol import (
    WELL_KNOWN,
    Answer,
    Delivery,
    Headers,
    Malformed,
    declaration,
    header,
    problem,
    read_delivery,
    refusal,
)
from .rules import Decision, decide
from .storage import (
    Connection,
    ParamStyle,
    Work,
    forget,
    look_up,
    note_fence,
    read,
    receive,
    wall_ms,
)

_log = logging.getLogger("fencepost.receiver")

Connect: TypeAlias = Callable[[], AbstractContextManager[Any]]
"""Gives a connection for the length of a ``with``: a pool's ``connection``, or
``lambda: contextlib.closing(sqlite3.connect(path))``."""

METHODS: Final = ("POST", "PUT", "PATCH")
MAX_BODY_BYTES: Final = 1024 * 1024
FORGET_EVERY_S: Final = 3_600.0
FORGET_LATER_S: Final = 86_400
"""Keys are kept so much longer than declared: a request that was sent in time may arrive late."""


class Receiver:
    """Keeps the contract at one URL.

    Args:
        connect: gives a connection to the database in which the work is done.
        work: does the work on that connection; see ``Work``. It may raise ``Refused``.
        base: the path of the URL that senders are given, such as ``/charges``.
        token: if given, every request must carry it as ``Authorization: Bearer``.
        keys_kept_s: how long keys are kept, in whole seconds; None means for ever.
        paramstyle: of the database's driver.
        max_body_bytes: larger bodies are refused.

    Threads: any number may call at once.
    """

    def __init__(
        self,
        connect: Connect,
        work: Work,
        *,
        base: str = "/",
        token: str | None = None,
        keys_kept_s: int | None = None,
        paramstyle: ParamStyle = "qmark",
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        if not base.startswith("/"):
            raise ValueError(f"base {base!r} must be a path, such as /charges")
        if keys_kept_s is not None and keys_kept_s < 1:
            raise ValueError(f"keys_kept_s is {keys_kept_s}; it must be 1 or more, or None for ever")
        self.max_body_bytes = max_body_bytes
        self._connect = connect
        self._work = work
        self._base = base.rstrip("/")
        self._token = token
        self._keys_kept_s = keys_kept_s
        self._paramstyle: ParamStyle = paramstyle
        self._in_flight = InFlight()
        self._next_forget = 0.0
        self._forgetting = threading.Lock()

    def owns(self, method: str, path: str) -> bool:
        """Whether such a request is the receiver's to answer; a service may have, say, a GET at the same path."""
        return (method in METHODS and self._is_base(path)) or self._question(path) is not None

    def head(self, method: str, path: str, headers: Headers) -> Answer | None:
        """The answer to a request, if its head is enough to give it; None: read the body, and call ``deliver``.

        ``path`` is as it was sent, without the query.
        """
        headers = list(headers)
        question = self._question(path)
        if question is None and not self._is_base(path):
            return problem(404, "not-found", "There is nothing here.")
        if not self._may(headers):
            challenge = (("WWW-Authenticate", "Bearer"),)
            return problem(401, "unauthorized", "The bearer token is missing or wrong.", headers=challenge)
        if question is not None:
            if method not in ("GET", "HEAD"):
                return _not_allowed("GET, HEAD")
            return self._look_up(question) if question else declaration(self._keys_kept_s)
        if method not in METHODS:
            return _not_allowed(", ".join(METHODS))
        length = header(headers, "Content-Length")
        if length is not None and length.isdigit() and int(length) > self.max_body_bytes:
            return self.too_large()
        return None

    def deliver(self, headers: Headers, body: bytes) -> Answer:
        """The answer to a delivery whose head was let pass."""
        if len(body) > self.max_body_bytes:
            return self.too_large()
        try:
            delivery = read_delivery(headers, body)
        except Malformed as error:
            return problem(400, "malformed", f"{error}.")
        try:
            return self._deliver(delivery)
        except Exception:  # noqa: BLE001 - work may raise anything: the log has it, the sender tries again
            _log.exception("the delivery of key %s failed", delivery.key)
            return problem(500, "failed", "The delivery failed; what became of it is answered by its key.")

    def too_large(self) -> Answer:
        """The answer to a body that is larger than is taken."""
        return problem(413, "too-large", f"At most {self.max_body_bytes} bytes are taken.")

    def _look_up(self, key: str) -> Answer:
        # In this order: what is done between the two looks is found by the second one.
        if key in self._in_flight:
            return refusal(Decision.IN_PROGRESS)
        try:
            with self._connect() as connection:
                return look_up(connection, key, paramstyle=self._paramstyle)
        except Exception:  # noqa: BLE001 - whatever a driver raises: never a 404, which would be a claim
            _log.exception("the question for key %s failed", key)
            return problem(500, "failed", "The database could not be asked.")

    def _deliver(self, delivery: Delivery) -> Answer:
        with self._connect() as connection:
            self._forget_if_due(connection)
            known = read(connection, delivery.key, paramstyle=self._paramstyle)
            if known is not None and known.answer is not None:
                return self._receive(connection, delivery)
            held = self._in_flight.take(delivery.key, fence=delivery.fence, digest=delivery.digest)
            if held is not None:
                return refusal(decide(held, fence=delivery.fence, digest=delivery.digest))
            try:
                return self._receive(connection, delivery)
            finally:
                newest = self._in_flight.release(delivery.key)
                if newest > delivery.fence:
                    note_fence(connection, delivery.key, newest, paramstyle=self._paramstyle)

    def _receive(self, connection: Connection, delivery: Delivery) -> Answer:
        return receive(connection, delivery, self._work, paramstyle=self._paramstyle)

    def _forget_if_due(self, connection: Connection) -> None:
        if self._keys_kept_s is None or time.monotonic() < self._next_forget:
            return
        if self._forgetting.acquire(blocking=False):
            try:
                self._next_forget = time.monotonic() + FORGET_EVERY_S
                before_ms = wall_ms() - (self._keys_kept_s + FORGET_LATER_S) * 1_000
                forget(connection, before_ms=before_ms, paramstyle=self._paramstyle)
            finally:
                self._forgetting.release()

    def _is_base(self, path: str) -> bool:
        return path.rstrip("/") == self._base

    def _question(self, path: str) -> str | None:
        """What a path below the well-known one asks for: a key, or "" for the declaration; None: it is another path."""
        prefix = self._base + WELL_KNOWN
        if path.rstrip("/") == prefix:
            return ""
        key = unquote(path.removeprefix(prefix + "/"))
        return key if path.startswith(prefix + "/") else None

    def _may(self, headers: Headers) -> bool:
        if self._token is None:
            return True
        scheme, _, token = (header(headers, "Authorization") or "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(
            token.strip().encode("utf-8", "surrogateescape"), self._token.encode("utf-8")
        )


def _not_allowed(methods: str) -> Answer:
    return problem(
        405, "method-not-allowed", f"Only {methods} are answered here.", headers=(("Allow", methods),)
    )
