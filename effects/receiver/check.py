"""Whether anybody's receiver keeps the contract, found out by sending to it. It does real work there.

Each row has a key of its own, so that one that fails says nothing about the others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .protocol import CONTRACT_VERSION, WELL_KNOWN

if TYPE_CHECKING:
    import httpx

DEFAULT_BODY: Final = b"hello from fencepost receiver check"
SENDERS: Final = 20


class Broken(Exception):
    """A row of the contract is not kept; the message says what came instead."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the contract, and what was found."""

    name: str
    expects: str
    failure: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it is kept."""
        return self.failure is None


class Check:
    """Asks the receiver at ``url`` for every row of the contract.

    Args:
        client: an httpx client, with whatever headers the receiver wants (authorization, content-type).
        method: how deliveries are sent.
        body: what they carry; a space is added to make another body.
    """

    def __init__(
        self, client: httpx.Client, url: str, *, method: str = "POST", body: bytes = DEFAULT_BODY
    ) -> None:
        self._client = client
        self._url = url
        self._well_known = url.rstrip("/") + WELL_KNOWN
        self._method = method
        self._body = body

    def rows(self) -> Iterator[Row]:
        """Play one row after the other."""
        for name, expects, play in self._plays():
            yield Row(name, expects, _played(play))

    def _plays(self) -> list[tuple[str, str, Callable[[], None]]]:
        return [
            ("declaration", f"GET …{WELL_KNOWN}: 200, the contract's version, keys_kept_s", self.declaration),
            ("new", "a new key: 201 with a JSON object", self.new),
            ("replay", "the same again, also with a newer fence: 200, Idempotent-Replayed, same body", self.replay),
            ("stale-fence", "a fence lower than one seen, whatever the body: 412", self.stale_fence),
            ("other-digest", "a known key with another body: 422, and the first answer stays", self.other_digest),
            ("missing-key", "no key: 400", self.missing_key),
            ("malformed-key", "a key that is no quoted string: 400", self.malformed_key),
            ("missing-digest", "no Content-Digest: 400", self.missing_digest),
            ("wrong-digest", "a Content-Digest that is not the body's: 400, and nothing is done", self.wrong_digest),
            ("concurrency", f"{SENDERS} at once with one key: one 201, else replays or 409", self.concurrency),
            ("reconcile", "GET by key: 200 with the receipt, 404 if never seen", self.reconcile),
        ]  # fmt: skip

    # -- the rows --

    def declaration(self) -> None:
        """The receiver says that it keeps the contract."""
        response = self._client.get(self._well_known)
        _expect(response, 200)
        document = _object(response)
        if document.get("fencepost_receiver") != CONTRACT_VERSION:
            raise Broken(f"fencepost_receiver must be {CONTRACT_VERSION}: {_said(response)}")
        kept_s = document.get("keys_kept_s", "missing")
        if not (kept_s is None or (type(kept_s) is int and kept_s > 0)):
            raise Broken(f"keys_kept_s must be seconds or null, it is {kept_s!r}")

    def new(self) -> None:
        """The work is done."""
        self._do(_key())

    def replay(self) -> None:
        """The work is not done again."""
        key = _key()
        first = self._do(key)
        for fence in (1, 2):
            self._replays(self._send(key, fence=fence), first)

    def stale_fence(self) -> None:
        """A stale sender is told so: after a first answer and after a replay, before its body is looked at."""
        key = _key()
        first = self._do(key, fence=3)
        _expect_problem(self._send(key, fence=2), 412)
        _expect_problem(self._send(key, fence=2, body=self._other_body()), 412)
        self._replays(self._send(key, fence=5), first)
        _expect_problem(self._send(key, fence=4), 412)

    def other_digest(self) -> None:
        """A key belongs to its first body."""
        key = _key()
        first = self._do(key)
        _expect_problem(self._send(key, body=self._other_body()), 422)
        self._replays(self._send(key), first)

    def missing_key(self) -> None:
        """Without a key nobody could recognise a repetition."""
        self._malformed({"idempotency-key": None})

    def malformed_key(self) -> None:
        """A key that is read differently by two readers is none."""
        for value in ("fp1-bare", '"fp1-open', '""'):
            self._malformed({"idempotency-key": value})

    def missing_digest(self) -> None:
        """Without a digest nobody could tell that the body is another one."""
        self._malformed({"content-digest": None})

    def wrong_digest(self) -> None:
        """A body that was changed on its way."""
        key = _key()
        _expect_problem(self._send(key, headers={"content-digest": _digest(self._other_body())}), 400)
        _expect_problem(self._send(key, headers={"content-digest": "sha-256=nonsense"}), 400)
        self._do(key)

    def concurrency(self) -> None:
        """Exactly one of many does the work."""
        key = _key()
        together = threading.Barrier(SENDERS)

        def send(_: int) -> httpx.Response:
            together.wait()
            return self._send(key)

        with ThreadPoolExecutor(SENDERS) as pool:
            responses = list(pool.map(send, range(SENDERS)))
        done = [response for response in responses if response.status_code == 201]
        if len(done) != 1:
            raise Broken(f"{len(done)} of {SENDERS} were answered 201")
        for response in responses:
            if response.status_code == 409:
                _expect_problem(response, 409)
                if not response.headers.get("retry-after"):
                    raise Broken("409 without Retry-After")
            elif response is not done[0]:
                self._replays(response, done[0])
        self._replays(self._send(key), done[0])

    def reconcile(self) -> None:
        """A sender that got no answer can ask."""
        key = _key()
        _expect_problem(self._client.get(f"{self._well_known}/{key}"), 404)
        first = self._do(key)
        answer = self._client.get(f"{self._well_known}/{key}")
        _expect(answer, 200)
        _expect_same(answer, first)

    # -- sending --

    def _do(self, key: str, *, fence: int = 1) -> httpx.Response:
        response = self._send(key, fence=fence)
        _expect(response, 201)
        _object(response)
        return response

    def _replays(self, response: httpx.Response, first: httpx.Response) -> None:
        _expect(response, 200)
        if response.headers.get("idempotent-replayed", "").lower() != "true":
            raise Broken("a replay without Idempotent-Replayed: true")
        _expect_same(response, first)

    def _malformed(self, headers: Mapping[str, str | None]) -> None:
        _expect_problem(self._send(_key(), headers=headers), 400)

    def _send(
        self,
        key: str,
        *,
        fence: int = 1,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> httpx.Response:
        body = self._body if body is None else body
        all_headers: dict[str, str | None] = {
            "idempotency-key": f'"{key}"',
            "fencepost-job": "receiver-check",
            "fencepost-fence": str(fence),
            "content-digest": _digest(body),
            **(headers or {}),
        }
        given = {name: value for name, value in all_headers.items() if value is not None}
        return self._client.request(self._method, self._url, content=body, headers=given)

    def _other_body(self) -> bytes:
        return self._body + b" "


def _played(play: Callable[[], None]) -> str | None:
    import httpx

    try:
        play()
    except Broken as broken:
        return str(broken)
    except httpx.HTTPError as error:
        return f"no answer: {type(error).__name__}: {error}"
    return None


def _key() -> str:
    return f"fp1-{secrets.token_hex(20)}"


def _digest(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def _expect(response: httpx.Response, status: int) -> None:
    if response.status_code != status:
        raise Broken(f"expected {status}, got {_said(response)}")


def _expect_problem(response: httpx.Response, status: int) -> None:
    _expect(response, status)
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/problem+json":
        raise Broken(f"{status} must be application/problem+json, it is {kind or 'of no type'}")


def _expect_same(response: httpx.Response, first: httpx.Response) -> None:
    if _object(response) != _object(first):
        raise Broken(f"the first answer was {_said(first)}, and now {_said(response)}")


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        document = json.loads(response.content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Broken(f"expected a JSON object, got {_said(response)}")
    return document


def _said(response: httpx.Response) -> str:
    return f"{response.status_code} {response.text[:100]!r}" if response.text else str(response.status_code)
