"""When a schedule fires: ``@every`` on a phase, or cron fields in a time zone. No clock, no ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..errors import InvalidInput, LimitExceeded
from .checks import MAX_INT
from .cron import Cron, next_boundary_ms, parse_cron
from .durations import parse_span
from .zones import UTC, check_zone, version

EVERY: Final = "@every"
FIRES_PER_TICK: Final = 64
"""How many boundaries of one schedule a tick fires at most; what has passed beyond them is skipped."""
LATE_MS: Final = 60_000
"""A boundary that fires later than this was missed."""

_EVERY: Final = re.compile(r"@every ([1-9][0-9]*)(s|m|h|d)", re.ASCII)
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Every:
    """Boundaries at equal distances; ``phase_ms`` is one of them."""

    period_ms: int
    phase_ms: int

    def after(self, at_ms: int) -> int | None:
        """The first boundary strictly after an instant; None: no clock reaches it."""
        next_ms = at_ms + self.period_ms - (at_ms - self.phase_ms) % self.period_ms
        return next_ms if next_ms <= MAX_INT else None


@dataclass(frozen=True, slots=True)
class Calendar:
    """Boundaries that cron fields make in a zone."""

    cron: Cron
    zone: str

    def after(self, at_ms: int) -> int | None:
        """The first boundary strictly after an instant; None: the calendar ends before it."""
        return next_boundary_ms(self.cron, self.zone, at_ms)


Timetable: TypeAlias = Every | Calendar


def timetable(every: str, zone: str, phase_ms: int) -> Timetable:
    """The timetable of a spec; ``phase_ms`` is a boundary of ``@every``, and nothing to cron.

    Raises:
        InvalidInput: the spec or the zone is not understood.
        LimitExceeded: the period is longer than any clock reaches.
    """
    if not isinstance(every, str):
        raise InvalidInput(
            f"schedule {every!r:.80}: must be a string, such as '@every 15m' or '0 9 * * mon-fri'"
        )
    if every.startswith(EVERY):
        period_ms = parse_every(every)
        if zone != UTC:
            raise InvalidInput(
                f"schedule {every!r:.80}: takes no zone, because its times have equal distances everywhere; "
                "give cron fields for times of the day"
            )
        return Every(period_ms, phase_ms)
    return Calendar(parse_cron(every), check_zone(zone))


def parse_every(spec: str) -> int:
    """The period in milliseconds of ``@every N(s|m|h|d)``: one whole N of 1 or more, one unit, nothing else.

    Raises:
        InvalidInput: it is not that.
        LimitExceeded: the period is longer than any clock reaches.
    """
    match = _EVERY.fullmatch(spec) if isinstance(spec, str) else None
    if match is None:
        raise InvalidInput(
            f"schedule {spec!r:.80}: must be '@every N' with a whole N of 1 or more and one unit of s, m, h or d, "
            "for example '@every 15m'"
        )
    digits, unit = match.groups()
    # A number of many digits is refused by its length: int() itself refuses more than a few thousand.
    if len(digits) > 16 or int(digits) * _UNIT_MS[unit] > MAX_INT:
        raise LimitExceeded(f"schedule {spec!r:.80}: the period is longer than any clock reaches")
    return int(digits) * _UNIT_MS[unit]


def tz_version_of(table: Timetable) -> str | None:
    """The version of the tz database that the boundaries depend on; None: they depend on none."""
    return version() if isinstance(table, Calendar) and table.zone != UTC else None


def boundaries(table: Timetable, next_ms: int, now_ms: int, missed: str) -> list[int]:
    """The boundaries that a tick fires, oldest first, of those from ``next_ms`` up to now.

    ``missed`` says which: ``all``, the oldest 64 of them; the ``latest`` one; or ``none`` but those that are a minute
    late at most.
    """
    if next_ms > now_ms:
        return []
    if missed == "latest":
        return [_latest(table, next_ms, now_ms)]
    first_ms: int | None = next_ms
    if missed == "none" and next_ms < now_ms - LATE_MS:
        first_ms = table.after(now_ms - LATE_MS - 1)
    fired: list[int] = []
    while first_ms is not None and first_ms <= now_ms and len(fired) < FIRES_PER_TICK:
        fired.append(first_ms)
        first_ms = table.after(first_ms)
    return fired


def _latest(table: Timetable, next_ms: int, now_ms: int) -> int:
    """The last boundary up to now, found by halving: years of minutes may have passed."""
    latest_ms, beyond_ms = next_ms, now_ms
    second_ms = table.after(next_ms)
    if second_ms is None or second_ms > now_ms:  # nearly always
        return next_ms
    while latest_ms < beyond_ms:
        middle_ms = (latest_ms + beyond_ms) // 2
        found_ms = table.after(middle_ms)
        if found_ms is not None and found_ms <= now_ms:
            latest_ms = found_ms
        else:
            # No boundary lies after the middle; one in the first half may.
            beyond_ms = middle_ms
    return latest_ms


def spec_of(written: str) -> str:
    """Return the spec that a person means: a bare span, such as ``15m`` or ``1.5h``, is ``@every`` of it.

    Raises:
        InvalidInput: it is no span that a schedule can have; the message quotes it as it was written.
    """
    if written.startswith("@") or len(written.split()) > 1:
        return written
    try:
        span_ms = parse_span(written, "every")
    except InvalidInput as error:
        raise InvalidInput(f"{error}; or five cron fields, or @daily and the like") from error
    if span_ms % 1_000 or not span_ms:
        raise InvalidInput(
            f"every {written!r}: must be a whole number of seconds, 1 or more, for example 15m"
        )
    spec = f"{EVERY} {written}"
    return spec if _EVERY.fullmatch(spec) else f"{EVERY} {span_ms // 1_000}s"
