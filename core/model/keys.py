"""Idempotency keys: the same for every attempt of a job, different for any other input."""

from __future__ import annotations

from .inputs import text_sha256


def idempotency_key(namespace: str, effect: str, id: str, input_sha256: str) -> str:
    """``fp1-`` and 40 hex digits of SHA-256 over the four parts, each followed by a NUL byte.

    Neither the attempt nor the fence is part of it: a receiver must recognise every repetition.
    """
    digest = text_sha256("".join(part + "\0" for part in (namespace, effect, id, input_sha256)))
    return f"fp1-{digest[:40]}"
