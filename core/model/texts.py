"""Texts that every ledger can store: an error may hold anything, and finishing its job must still land."""

from __future__ import annotations

from typing import Final

MAX_ERROR_BYTES: Final = 16 * 1024


def storable(text: str, max_bytes: int = MAX_ERROR_BYTES) -> str:
    """The text with NUL and lone surrogates escaped, cut between characters at ``max_bytes`` of UTF-8."""
    data = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace")
    return data[:max_bytes].decode("utf-8", "ignore")


def headline(error: BaseException) -> str:
    """Return the type and the message of an error, whatever an author's exception does when it is looked at."""
    try:
        return plain(f"{type(error).__name__}: {message_of(error)}")
    except BaseException:  # noqa: BLE001 - an author's metaclass may raise anything
        return f"an exception whose class has no name: {message_of(error)}"


def message_of(error: BaseException) -> str:
    """Return ``str(error)``, or a text that says that there is none."""
    try:
        return plain(str(error))
    except BaseException:  # noqa: BLE001 - an exception whose own __str__ fails must not hide that it happened
        return "(its message could not be read)"


def plain(text: str) -> str:
    """Return the text as exactly a ``str``: an author's subclass may answer its methods with anything."""
    return str.__str__(text)
