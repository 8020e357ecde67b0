"""Texts that every ledger can store: an error may hold anything, and finishing its job must still land."""

from __future__ import annotations

from typing import Final

MAX_ERROR_BYTES: Final = 16 * 1024


def storable(text: str, max_bytes: int = MAX_ERROR_BYTES) -> str:
    """The text with NUL and lone surrogates escaped, cut between characters at ``max_bytes`` of UTF-8."""
    data = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")
    return data[:max_bytes].decode("utf-8", "ignore")
