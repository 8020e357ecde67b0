"""Ids that are computed from what a job is about, so that the same job gets the same id again."""

from __future__ import annotations

from typing import Final

from ..errors import InvalidInput
from .checks import check_int
from .clock import wall_ms
from .documents import canonical
from .durations import parse_span
from .inputs import check_text, text_sha256

_PREFIX: Final = "u-"
_DIGITS: Final = 40


def unique_id(*parts: str | int, per: str | None = None, at_ms: int | None = None) -> str:
    """Return the same id for the same parts, and another one for any others.

    ``unique_id("report", 7, per="1h")`` is the same all through an hour of UTC: however often the job is enqueued in
    that hour, it is one job. Periods count from the Unix epoch.

    Args:
        parts: what the job is about; the text ``"7"`` and the number ``7`` are different parts.
        per: the length of a period, such as ``"15m"``; without it the id is the same for ever.
        at_ms: the instant that chooses the period, in milliseconds since the epoch; now unless given.

    Raises:
        InvalidInput: there are no parts, one is neither a string nor a whole number, or the period is none.
    """
    if not parts:
        raise InvalidInput("unique_id needs at least one part: say what the job is about")
    for place, part in enumerate(parts, 1):
        if isinstance(part, str):
            check_text(part, f"part {place}")
        elif type(part) is not int:
            raise InvalidInput(
                f"part {place} must be a string or a whole number, not {type(part).__name__}: write str(…) around it"
            )
    period = None if per is None else _period(per, at_ms)
    if per is None and at_ms is not None:
        raise InvalidInput("at_ms chooses a period: say how long it is with per, for example per='1h'")
    return _PREFIX + text_sha256(canonical([list(parts), period]))[:_DIGITS]


def _period(per: str, at_ms: int | None) -> list[int]:
    """The length of the period, and when the one of that instant begins."""
    if not isinstance(per, str):
        raise InvalidInput(f"per must be a span such as '15m', not {per!r:.40}")
    length_ms = parse_span(per, "per")
    if length_ms == 0:
        raise InvalidInput(f"per {per!r}: a period must be longer than 0")
    instant_ms = wall_ms() if at_ms is None else check_int(at_ms, "at_ms")
    return [length_ms, instant_ms - instant_ms % length_ms]
