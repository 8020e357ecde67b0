"""Deliveries as a sender makes them."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import httpx
from fencepost.plugins import EffectRequest
from fencepost.plugins.testing import make_request


def plain_client() -> httpx.Client:
    """A client for http:// on this machine: no proxies, and no certificates to load."""
    return httpx.Client(trust_env=False, verify=False, timeout=60)


def content_digest(body: bytes) -> str:
    """The header of RFC 9530."""
    return f"sha-256=:{b64encode(hashlib.sha256(body).digest()).decode()}:"


def headers(body: bytes, *, key: str = "fp1-abc", fence: int = 1, **more: str) -> dict[str, str]:
    """The headers of a delivery; ``more`` has underscores for hyphens."""
    return {
        "idempotency-key": f'"{key}"',
        "fencepost-job": "job-1",
        "fencepost-fence": str(fence),
        "content-digest": content_digest(body),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }


def request(
    text: str = "hello", *, fence: int = 1, first_claimed_at_ms: int | None = None, now_ms: int | None = None
) -> EffectRequest:
    """What the effect ``remote`` is given for an attempt at a job with this text."""
    made = make_request(text, effect="remote", fence=fence)
    made.first_claimed_at_ms, made.now_ms = first_claimed_at_ms, now_ms
    return made
