"""Time zones: the local clock of a zone, day by day, from the tz database of the installed package ``tzdata``.

The operating system's own tz database is not used: its version is written down nowhere that holds on every system,
and a schedule keeps the version of the data that made its next boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from ..errors import InvalidInput

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

UTC: Final = "UTC"
DAY_S: Final = 86_400
EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
LAST_S: Final = (date(9999, 12, 1).toordinal() - EPOCH_ORDINAL) * DAY_S
"""Python's calendar ends with the year 9999; no later instant has a local time."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a local day in which the zone's offset stays the same: from ``start_s`` up to, not with, ``end_s``."""

    start_s: int
    end_s: int
    offset_s: int
    """Local time less UTC."""


@dataclass(frozen=True, slots=True)
class LocalDay:
    """The instants at which a zone's calendar shows one date; none of them where the date was left out."""

    stretches: tuple[Stretch, ...]
    after_s: int
    """The first instant after them; of a date that was left out, the instant at which the calendar jumped over it."""


def check_zone(value: object) -> str:
    """Return ``value`` if it names a zone of the tz database.

    Raises:
        InvalidInput: it does not, and names the nearest one.
    """
    if isinstance(value, str) and (value == UTC or value in _names()):
        return value
    near = get_close_matches(value, _names(), n=1) if isinstance(value, str) and len(value) < 100 else []
    hint = f"; did you mean {near[0]!r}?" if near else ", for example 'Europe/Berlin'"
    raise InvalidInput(
        f"zone {value!r:.80}: no IANA time zone of that name in the tz database {version()}{hint}"
    )


@cache
def version() -> str:
    """The version of the installed tz database: a year and letters, such as ``2026f``; later ones compare greater."""
    from tzdata import IANA_VERSION

    found: str = IANA_VERSION
    return found


def local_time(zone: str, at_ms: int) -> datetime:
    """What the zone's calendar and clock show at an instant, with the offset from UTC.

    Raises:
        OverflowError: Python's calendar does not reach it.
    """
    moment = datetime.fromtimestamp(at_ms // 1_000, tz=_load(zone))
    return moment.replace(microsecond=at_ms % 1_000 * 1_000)


def local_date(zone: str, at_s: int) -> int:
    """The ordinal of the date that the zone's calendar shows at an instant."""
    return (at_s + _offset_s(zone, at_s)) // DAY_S + EPOCH_ORDINAL


@lru_cache(maxsize=4096)
def local_day(zone: str, ordinal: int) -> LocalDay:
    """When the zone's calendar shows the date of that ordinal.

    Within the hours of one date there is at most one change of the offset: between any two changes in the tz database
    since 1970 lie six days or more.
    """
    local_s = (ordinal - EPOCH_ORDINAL) * DAY_S
    first_s, last_s = _earliest(zone, local_s), _latest(zone, local_s + DAY_S)
    change_s = _change_s(zone, first_s, last_s)
    parts = [(first_s, last_s)] if change_s is None else [(first_s, change_s), (change_s, last_s)]
    stretches = []
    for start_s, end_s in parts:
        offset_s = _offset_s(zone, start_s)
        start_s = max(start_s, local_s - offset_s)
        end_s = min(end_s, local_s + DAY_S - offset_s)
        if start_s < end_s:
            stretches.append(Stretch(start_s, end_s, offset_s))
    return LocalDay(tuple(stretches), stretches[-1].end_s if stretches else last_s)


def _offset_s(zone: str, at_s: int) -> int:
    if zone == UTC:
        return 0
    offset = datetime.fromtimestamp(at_s, _load(zone)).utcoffset()
    assert offset is not None, "a datetime with a zone has an offset"
    return int(offset.total_seconds())


def _earliest(zone: str, local_s: int) -> int:
    return min(local_s - offset_s for offset_s in _offsets_at(zone, local_s))


def _latest(zone: str, local_s: int) -> int:
    return max(local_s - offset_s for offset_s in _offsets_at(zone, local_s))


def _offsets_at(zone: str, local_s: int) -> list[int]:
    """The offset at a local time; around a change of the clock, the one before it and the one after it."""
    if zone == UTC:
        return [0]
    local = datetime(1970, 1, 1) + timedelta(seconds=local_s)
    offsets = [local.replace(tzinfo=_load(zone), fold=fold).utcoffset() for fold in (0, 1)]
    return [int(offset.total_seconds()) for offset in offsets if offset is not None]


def _change_s(zone: str, start_s: int, end_s: int) -> int | None:
    """The instant of the change of the offset after ``start_s``, up to ``end_s``; None: there is none."""
    before = _offset_s(zone, start_s)
    if _offset_s(zone, end_s) == before:
        return None
    low_s, high_s = start_s, end_s
    while high_s - low_s > 1:
        middle_s = (low_s + high_s) // 2
        if _offset_s(zone, middle_s) == before:
            low_s = middle_s
        else:
            high_s = middle_s
    return high_s


@cache
def _load(name: str) -> ZoneInfo:
    # Slow to load, and only schedules with a zone need them.
    from importlib import resources
    from zoneinfo import ZoneInfo

    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def _names() -> frozenset[str]:
    from importlib import resources  # slow to load, and only schedules with a zone need it

    return frozenset(resources.files("tzdata").joinpath("zones").read_text("utf-8").split())
