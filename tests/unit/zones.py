"""Zones for tests of calendars, from the tz database that the program uses, and instants written with their offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Sao_Paulo",
    "Pacific/Apia", "Asia/Kathmandu", "America/Havana", "America/St_Johns", "Asia/Beirut", "Pacific/Chatham",
)  # fmt: skip
"""Whole, half and quarter hours; changes of 30 minutes, at midnight and back over it, for Ramadan, of a whole day."""


@cache
def zone_of(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def ms(written: str) -> int:
    """The milliseconds of an instant such as ``2026-03-29T03:00+02:00``."""
    return round(datetime.fromisoformat(written).timestamp() * 1_000)


def written(at_ms: int, zone: str) -> str:
    """The instant as the zone's calendar and clock show it, with the offset."""
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(zone_of(zone))
    return moment.isoformat(timespec="minutes")


@cache
def changes_ms(name: str) -> tuple[int, ...]:
    """The noons, from 1995 to 2045, of UTC's days in which the zone changes its clock; one day where it never does."""
    zone, found = zone_of(name), []
    day = datetime(1995, 1, 1, tzinfo=UTC)
    while day.year < 2045:
        following = day + timedelta(days=1)
        if day.astimezone(zone).utcoffset() != following.astimezone(zone).utcoffset():
            found.append(round(day.timestamp() * 1_000) + 12 * 3_600_000)
        day = following
    return tuple(found) or (ms("2026-03-29T12:00+00:00"),)
