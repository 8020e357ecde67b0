"""The receiver inside an ASGI application: it answers what is its own, and passes on everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from .protocol import Answer
from .service import Receiver

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class ReceiverMiddleware:
    """Puts a receiver in front of ``app``, at the receiver's base. For servers that run on asyncio."""

    def __init__(self, app: App, receiver: Receiver) -> None:
        self._app = app
        self._receiver = receiver

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, in a thread: the service's work may take its time."""
        path = _path(scope) if scope["type"] == "http" else ""
        if scope["type"] != "http" or not self._receiver.owns(scope["method"], path):
            await self._app(scope, receive, send)
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        answer = await asyncio.to_thread(self._receiver.head, scope["method"], path, headers)
        if answer is None:
            body = await self._body(receive)
            if body is None:
                return
            answer = await asyncio.to_thread(self._receiver.deliver, headers, body)
        await _respond(send, answer, with_body=scope["method"] != "HEAD")

    async def _body(self, receive: Receive) -> bytes | None:
        """The body, cut off where it is known to be too large; None if the sender has gone."""
        parts: list[bytes] = []
        size, more = 0, True
        while more and size <= self._receiver.max_body_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
        return b"".join(parts)


def _path(scope: Scope) -> str:
    """The path as it was sent: a key may hold an escaped slash."""
    raw: bytes | None = scope.get("raw_path")
    return str(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")


async def _respond(send: Send, answer: Answer, *, with_body: bool) -> None:
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.all_headers()
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body if with_body else b""})
