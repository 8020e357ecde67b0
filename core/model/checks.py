"""Checks of single values: each returns the value, or raises InvalidInput with the field's name and its rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import InvalidInput

MAX_INT: Final = 2**53 - 1
"""The largest instant, span or count: exact in every JSON reader, and sums of two fit 64 bits."""

MAX_SPAN_MS: Final = 100 * 365 * 86_400_000
"""The longest span, 100 years: clocks, time-outs of the system and JSON carry it, and an instant that it leads to."""


def check_int(value: object, what: str, *, low: int = 0, high: int = MAX_INT) -> int:
    """Return ``value`` if it is a whole number within bounds (a bool is not a number)."""
    if type(value) is not int:
        raise InvalidInput(f"{what} must be a whole number, not {value!r:.40}")
    if not low <= value <= high:
        raise InvalidInput(f"{what} is {figure(value)}, it must lie between {low} and {high}")
    return value


def check_string(value: object, what: str) -> str:
    """Return ``value`` if it is a string; it may hold anything, because ledgers escape what they cannot store."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__}")
    return value


def check_storable(value: object, what: str) -> str:
    """Return ``value`` if it is a string that every ledger stores, or compares, exactly as it is."""
    string = check_string(value, what)
    try:
        string.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} has a lone surrogate at character {error.start}") from error
    if "\0" in string:
        raise InvalidInput(f"{what} holds a NUL character")
    return string


def check_strings(value: object, what: str) -> tuple[str, ...]:
    """Return the strings of a sequence as a tuple."""
    # A generator would be used up by the check, and then name nothing; a string would be taken for its letters.
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(one, str) for one in value)
    ):
        example = f": write ({value!r:.40},) for one" if isinstance(value, str) else ""
        raise InvalidInput(f"{what} must be a sequence of strings, not {value!r:.40}{example}")
    return tuple(value)


def figure(value: float) -> str:
    """The number as text; Python refuses to write out one of thousands of digits."""
    return "a number of more than 20 digits" if type(value) is int and abs(value) >= 10**20 else str(value)
