"""Cron expressions: five fields, and the instants in a time zone at which they fire. No clock, no ledger.

The library cronsim parses the fields. The instants are computed here, by these rules:

- A fixed time (no ``*`` in the minute and in the hour) that the clock jumps over fires once, at the first instant
  after the jump. One that comes twice fires the first time.
- With a ``*`` in the minute or in the hour, every minute fires whose local time matches: the expression follows the
  time that passes. What the clock jumps over does not fire, what comes twice fires twice.
- Times that fall on the same instant fire once.
- Where the day of the month or the day of the week begins with ``*``, both must match; else either of them does.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from ..errors import InvalidInput
from .zones import DAY_S, EPOCH_ORDINAL, LAST_S, LocalDay, local_date, local_day

NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}

_MAX_LENGTH: Final = 200
_YEARS: Final = 50
"""How far ahead a day is looked for. 29 February falls on a given day of the week every 40 years or sooner."""
_EXPRESSION: Final = re.compile(r"[0-9A-Za-z*/,#-]+(?:[ \t]+[0-9A-Za-z*/,#-]+)*")


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression."""

    minutes_of_day: tuple[int, ...]
    """Hour * 60 + minute of every time on a day that matches, in order."""
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int | tuple[int, int]]
    """0 to 7, Sunday being 0 and 7; (5, 2) is the second Friday of the month."""
    both_days: bool
    """The day of the month and the day of the week must both match."""
    follows_elapsed_time: bool
    """A ``*`` stands in the minute or in the hour."""

    def has(self, day: date) -> bool:
        """Whether the expression fires on the date."""
        if day.month not in self.months:
            return False
        of_month = day.day in self.days
        if of_month is not self.both_days:
            return of_month
        return any(
            weekday in self.weekdays or (weekday, (day.day + 6) // 7) in self.weekdays
            for weekday in ((0, 7) if day.isoweekday() == 7 else (day.isoweekday(),))
        )


@lru_cache(maxsize=4096)
def parse_cron(expression: str) -> Cron:
    """The parsed form of five cron fields or of ``@hourly``, ``@daily``, ``@weekly``, ``@monthly`` or ``@yearly``.

    Raises:
        InvalidInput: it is not that, or no day ever matches.
    """
    from cronsim import CronSim, CronSimError

    fields = NICKNAMES.get(expression, expression)
    if len(fields) > _MAX_LENGTH:
        raise InvalidInput(f"schedule {expression!r:.80}: longer than {_MAX_LENGTH} characters")
    parts = fields.split()
    if not _EXPRESSION.fullmatch(fields) or len(parts) != 5:
        raise _refused(expression, "it has not five fields")
    try:
        parsed = CronSim(fields, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise _refused(expression, str(error)[:1].lower() + str(error)[1:]) from error
    weekdays = frozenset(parsed.weekdays)
    # cronsim writes the last day, the last weekday and the last Friday of a month as negative numbers.
    if min(parsed.days) < 0 or any(isinstance(day, tuple) and day[1] < 0 for day in weekdays):
        raise _refused(expression, "L and W are not supported")
    cron = Cron(
        minutes_of_day=tuple(
            hour * 60 + minute for hour in sorted(parsed.hours) for minute in sorted(parsed.minutes)
        ),
        days=frozenset(parsed.days),
        months=frozenset(parsed.months),
        weekdays=weekdays,
        both_days=parsed.day_and,
        follows_elapsed_time="*" in parts[0] or "*" in parts[1],
    )
    if next(_days(cron, date(2000, 1, 1).toordinal()), None) is None:
        raise _refused(expression, "no day matches the day of the month, the month and the day of the week")
    return cron


def next_boundary_ms(cron: Cron, zone: str, after_ms: int) -> int | None:
    """The first instant strictly after ``after_ms`` at which the expression fires in the zone.

    None: there is none before the calendar ends, with the year 9999.
    """
    after_s = after_ms // 1_000
    if after_s >= LAST_S:
        return None
    # From the day before, which may come again, or whose time may have been jumped over until now.
    days = _days(cron, local_date(zone, after_s) - 1)
    for ordinal in days:
        day = local_day(zone, ordinal)
        at_s = _first_in(cron, day, ordinal, after_s)
        if at_s is None:
            continue
        if len(day.stretches) > 1 and cron.follows_elapsed_time and next(days, None) == ordinal + 1:
            # Where the clock is set back over midnight, the next date begins before this one comes again.
            other_s = _first_in(cron, local_day(zone, ordinal + 1), ordinal + 1, after_s)
            at_s = at_s if other_s is None else min(at_s, other_s)
        return at_s * 1_000
    return None


def _days(cron: Cron, ordinal: int) -> Iterator[int]:
    """The ordinals of the dates that match, from one on, as far as a date is looked for."""
    day = date.fromordinal(ordinal)
    last = min(ordinal + _YEARS * 366, EPOCH_ORDINAL + LAST_S // DAY_S)
    while day.toordinal() < last:
        if day.month not in cron.months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            continue
        if cron.has(day):
            yield day.toordinal()
        day += timedelta(days=1)


def _first_in(cron: Cron, day: LocalDay, ordinal: int, after_s: int) -> int | None:
    """The first instant of a matching day that fires strictly after ``after_s``."""
    times, midnight_s = cron.minutes_of_day, (ordinal - EPOCH_ORDINAL) * DAY_S
    if not cron.follows_elapsed_time:

        def fires_s(minute: int) -> int:
            return _first_at(day, midnight_s + minute * 60)

        place = bisect_right(times, after_s, key=fires_s)
        return fires_s(times[place]) if place < len(times) else None
    for stretch in day.stretches:
        from_s = max(stretch.start_s, after_s + 1) + stretch.offset_s - midnight_s
        place = bisect_left(times, -(-from_s // 60))
        if place < len(times):
            at_s = midnight_s + times[place] * 60 - stretch.offset_s
            if at_s < stretch.end_s:
                return at_s
    return None


def _first_at(day: LocalDay, local_s: int) -> int:
    """The first instant of the day at which its local clock shows ``local_s`` or later."""
    for stretch in day.stretches:
        if stretch.end_s + stretch.offset_s > local_s:
            return max(stretch.start_s, local_s - stretch.offset_s)
    return day.after_s


def _refused(expression: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"schedule {expression!r:.80}: {why}; it must be '@every N' with a unit of s, m, h or d, one of "
        f"{', '.join(NICKNAMES)}, or five cron fields: minute, hour, day of the month, month, day of the week, "
        "for example '0 9 * * mon-fri'"
    )
