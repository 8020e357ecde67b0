"""Spans and instants in plain words, and back: ``90s`` or ``1.5`` in an option, "in 2 min" on a screen."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from ..errors import InvalidInput
from .checks import MAX_SPAN_MS

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN: Final = re.compile(r"(\d{1,16}(?:\.\d{1,9})?)(ms|s|m|h|d)?", re.ASCII)
_STEPS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))

FIRST_WALL_MS: Final = 946_684_800_000
"""The year 2000. An instant before it comes from a logical clock, not from a calendar."""


def parse_span(text: str, what: str = "") -> int:
    """Return the milliseconds of ``250ms``, ``90s``, ``15m``, ``1.5h`` or ``7d``; without a unit it is seconds.

    What is finer than a millisecond is rounded up, as in stamps.

    Raises:
        InvalidInput: the text is no span; the message begins with ``what``.
    """
    quoted = f"{what} {text!r:.40}".lstrip()
    match = _SPAN.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{quoted}: must be a number and one unit of ms, s, m, h or d, for example 15m; without a unit it is "
            "seconds"
        )
    whole, _, fraction = match[1].partition(".")
    parts: int = 10 ** len(fraction)
    value_ms = -(-int(whole + fraction) * _UNITS_MS[match[2] or "s"] // parts)  # rounded up
    if value_ms > MAX_SPAN_MS:
        raise InvalidInput(f"{quoted}: more than 100 years")
    return value_ms


def instant_ms(text: str, what: str) -> int:
    """An instant in ISO 8601 with its time zone, or in milliseconds since the epoch; ``what`` names the option.

    Raises:
        InvalidInput: it is neither.
    """
    if text.isascii() and text.isdigit():
        if len(text) == len("20261231") and text[:2] in ("19", "20"):  # milliseconds of an afternoon in 1970?
            raise InvalidInput(f"{what} {text!r}: for a day write {text[:4]}-{text[4:6]}-{text[6:]}T00:00Z")
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{what} {text!r}: neither ISO 8601 nor milliseconds since the epoch") from error
    if when.tzinfo is None:
        example = when.isoformat(timespec="auto" if when.second or when.microsecond else "minutes")
        raise InvalidInput(f"{what} {text!r}: name the time zone, for example {example}Z")
    return round(when.timestamp() * 1_000)


def words(span_ms: int) -> str:
    """A span as people say it, in its two largest units at most: 250 ms, 12 s, 3 min, 2 h 5 min, 4 d."""
    if span_ms < 1_000:
        return f"{span_ms} ms"
    place, (name, size_ms) = next(step for step in enumerate(_STEPS) if span_ms >= step[1][1])
    whole, rest_ms = divmod(span_ms, size_ms)
    if name == "s" or whole >= 10:
        return f"{whole} {name}"
    smaller, smaller_ms = _STEPS[place + 1]
    rest = rest_ms // smaller_ms
    return f"{whole} {name} {rest} {smaller}" if rest else f"{whole} {name}"


def relative(at_ms: int, now_ms: int) -> str:
    """An instant as seen from now: "in 12 s", "3 min ago", "now"."""
    if at_ms == now_ms:
        return "now"
    return f"in {words(at_ms - now_ms)}" if at_ms > now_ms else f"{words(now_ms - at_ms)} ago"


def calendar(at_ms: int) -> str:
    """An instant as a date in UTC; one of a logical clock stays a number."""
    if not FIRST_WALL_MS <= at_ms < 253_402_300_800_000:
        return f"{at_ms} ms"
    return datetime.fromtimestamp(at_ms // 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
