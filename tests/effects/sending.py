"""Deliveries as a sender makes them."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import httpx


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
