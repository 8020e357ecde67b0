"""The hooks of ``remote``, and the order of what is asked and sent.

first use          ask for the receiver's declaration; without it nothing is ever sent
fence above 1      an earlier attempt may have sent: ask for the receipt of the key
receipt there      that is the outcome, nothing is sent
keys forgotten     the job is older than the receiver keeps keys: held
else               send, with key, fence and digest
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from fencepost.plugins import (
    Applied,
    EffectInfo,
    EffectRequest,
    InvalidInput,
    Reconciled,
    Reject,
    Unknown,
    hookimpl,
)

from .answers import (
    check_age,
    keys_kept_s,
    outcome_of_send,
    stored_outcome,
)
from .exchange import Exchange, Response
from .settings import MAX_ANSWER_BYTES, SETTINGS, check

WELL_KNOWN: Final = "/.well-known/fencepost-receiver"
"""Below the url: the declaration, and one segment further down the receipt of a key."""
DECLARED_FOR_S: Final = 300.0
"""How long a declaration is believed: a worker lives for months, and a receiver may come to keep keys shorter."""


class Remote:
    """The plugin. An object and not a module, because it holds connections."""

    def __init__(self) -> None:
        self._settings: Mapping[str, Any] = {}
        self._exchange: Exchange | None = None
        self._declared: tuple[float, int | None] | None = None
        """When the declaration was read, by the monotonic clock, and how long keys are kept (None: for ever)."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        """``keyed``: the receiver keeps the idempotency key and replays its answer."""
        return EffectInfo(
            name="remote",
            summary="Sends the text over HTTP to a receiver, which does the work once for each key.",
            delivery="keyed",
            receiver_key="the header Idempotency-Key",
            settings=SETTINGS,
        )

    @hookimpl
    def effect_configure(self, settings: Mapping[str, Any]) -> None:
        """Check the settings and make a client; nothing is sent yet."""
        check(settings)
        self._settings = settings
        self._exchange = Exchange(
            connect_timeout_s=settings["connect_timeout_s"], timeout_s=settings["timeout_s"]
        )

    @hookimpl
    def effect_validate(self, text: str) -> None:
        """Refuse at enqueue what would be too large to send."""
        limit = self._settings["max_body_bytes"]
        size = len(self._body("x" * 64, text))
        if size > limit:
            raise InvalidInput(f"the body would have {size:,} bytes, at most {limit:,} are sent")

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        """Have the work done, or find that it was; the receipt is what the receiver stored."""
        kept_s = self._keys_kept_s()
        if request.fence > 1:
            outcome = self._stored(request)
            if outcome is not None:
                return outcome
        check_age(request, kept_s)
        # The questions took their time: renewed now, the lease is known to hold right before the send.
        request.heartbeat()
        request.mark("before-send")
        response = self._send(request)
        request.mark("after-send")
        return outcome_of_send(request, response)

    @hookimpl
    def effect_reconcile(self, request: EffectRequest) -> Reconciled:
        """Ask what became of the key. The answer is never "no": an earlier request may still be on its way."""
        self._keys_kept_s()
        outcome = self._stored(request)
        if outcome is None:
            return Unknown("the receiver has not seen the key; a request may still be on its way")
        return Applied(outcome)

    @hookimpl
    def effect_close(self) -> None:
        """Close the connections."""
        if self._exchange is not None:
            self._exchange.close()

    def _keys_kept_s(self) -> int | None:
        """How long the receiver keeps keys (None: for ever), by its own declaration."""
        if self._declared is None or time.monotonic() - self._declared[0] >= DECLARED_FOR_S:
            self._declared = (time.monotonic(), keys_kept_s(self._ask("")))
        return self._declared[1]

    def _stored(self, request: EffectRequest) -> dict[str, Any] | None:
        """The outcome that the receiver stored for the key; None if it has none."""
        return stored_outcome(request, self._ask(f"/{request.idempotency_key}"))

    def _ask(self, path: str) -> Response:
        url = self._settings["url"].rstrip("/") + WELL_KNOWN + path
        return self._sender().exchange("GET", url, headers=self._headers(), limit=MAX_ANSWER_BYTES)

    def _send(self, request: EffectRequest) -> Response:
        settings = self._settings
        body = self._body(request.id, request.text)
        if len(body) > settings["max_body_bytes"]:
            raise Reject(f"the body has {len(body):,} bytes, at most {settings['max_body_bytes']:,} are sent")
        headers = self._headers() | {
            "idempotency-key": f'"{request.idempotency_key}"',
            "fencepost-job": request.id,
            "fencepost-fence": str(request.fence),
            "content-digest": f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:",
        }
        return self._sender().exchange(
            settings["method"], settings["url"], headers=headers, body=body, limit=MAX_ANSWER_BYTES
        )

    def _body(self, id: str, text: str) -> bytes:
        if self._settings["body"] == "text":
            return text.encode("utf-8")
        return json.dumps({"id": id, "text": text}, ensure_ascii=False, separators=(",", ":")).encode("utf-8")

    def _headers(self) -> dict[str, str]:
        kind = "text/plain; charset=utf-8" if self._settings["body"] == "text" else "application/json"
        headers = {"content-type": kind, "accept": "application/json, application/problem+json"}
        headers |= {name.lower(): value for name, value in self._settings["headers"].items()}
        if self._settings["token"] is not None:
            headers["authorization"] = f"Bearer {self._settings['token']}"
        return headers

    def _sender(self) -> Exchange:
        assert self._exchange is not None, "configured before it is used"
        return self._exchange
