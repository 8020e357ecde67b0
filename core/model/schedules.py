"""``@every``: the arithmetic of schedules (docs/reference/contract/schedules.md §7.8), without clock or ledger."""

from __future__ import annotations

import re
from typing import Final

from ..errors import InvalidInput, LimitExceeded
from .checks import MAX_INT, check_int
from .inputs import (
    NewJob,
    check_job,
    check_schedule_name,
    check_stamps,
)
from .job import whole_ms
from .records import Schedule

FIRES_PER_TICK: Final = 64
"""How many boundaries of one schedule a tick fires at most; what is older than its last is skipped."""

_EVERY: Final = re.compile(r"@every ([1-9][0-9]*)(s|m|h|d)", re.ASCII)
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


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


def first_boundary(schedule: Schedule, now_ms: int) -> int:
    """When a schedule that is registered now fires first: one period from now.

    Raises:
        LimitExceeded: no clock reaches that.
    """
    first_ms = now_ms + parse_every(schedule.every)
    if first_ms > MAX_INT:
        raise LimitExceeded(
            f"schedule {schedule.name!r}: its first boundary is beyond what any clock reaches"
        )
    return first_ms


def boundaries(next_ms: int, every_ms: int, now_ms: int, cap: int = FIRES_PER_TICK) -> tuple[list[int], int]:
    """The boundaries that a tick fires, oldest first, and the next one that stays.

    At most ``cap`` are fired; what has passed beyond them is skipped. The next one is the first strictly after
    ``now_ms``, on the same phase.
    """
    if next_ms > now_ms:
        return [], next_ms
    passed = (now_ms - next_ms) // every_ms + 1
    fired = [next_ms + place * every_ms for place in range(min(passed, cap))]
    return fired, next_ms + passed * every_ms


def fired_job(schedule: Schedule, boundary_ms: int) -> NewJob:
    """The job of one boundary. Its id is made of both, so that no boundary can be fired twice."""
    expires_s = schedule.expires_s
    return NewJob(
        id=f"{schedule.name}-{boundary_ms}",
        text=schedule.text,
        queue=schedule.queue,
        effect=schedule.effect,
        priority=schedule.priority,
        expires_at_ms=None if expires_s is None else boundary_ms + whole_ms(expires_s),
        stamps=schedule.stamps,
    )


def check_schedule(schedule: Schedule) -> Schedule:
    """Return ``schedule`` if every field keeps its rule, so that each of its jobs will.

    Raises:
        InvalidInput: names the field and the rule.
    """
    check_schedule_name(schedule.name)
    parse_every(schedule.every)
    check_stamps(schedule.stamps)
    if schedule.expires_s is not None:
        if type(schedule.expires_s) not in (int, float) or not 0 < schedule.expires_s <= MAX_INT / 1_000:
            raise InvalidInput(f"expires_s is {schedule.expires_s!r}, it must be seconds, more than 0")
        check_int(whole_ms(schedule.expires_s), "expires_s in milliseconds")
    try:
        check_job(fired_job(schedule, 0))
    except InvalidInput as error:
        raise type(error)(f"schedule {schedule.name!r}: {error}") from error
    return schedule
