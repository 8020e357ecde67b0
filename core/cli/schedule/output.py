"""Schedules and what they fired, as documents and as lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ...model.durations import calendar, relative
from ...model.inputs import text_sha256
from ...model.records import Fire, Schedule
from ...model.zones import UTC, local_time
from ..ui.output import print_document, wants_json


def document(schedule: Schedule) -> dict[str, Any]:
    """A schedule without its text, which may be a megabyte."""
    shown = asdict(schedule)
    text = shown.pop("text")
    return shown | {"text_bytes": len(text.encode("utf-8")), "text_sha256": text_sha256(text)}


def report_next(words: str, schedule: Schedule, now_ms: int, *, as_json: bool) -> None:
    """Tell when the schedule fires next, after these words."""
    if wants_json(as_json):
        print_document({"schema_version": 1, "schedule": document(schedule)})
    else:
        next_ms = schedule.next_ms or 0
        print(f"{words} {relative(next_ms, now_ms)} ({written(next_ms, schedule.zone)})")


def report_fires(fires: Iterable[Fire], *, as_json: bool) -> None:
    """Tell what was fired, and what was not and why."""
    fires = list(fires)
    if wants_json(as_json):
        print_document({"schema_version": 1, "fired": [fire._asdict() for fire in fires]})
        return
    for fire in fires:
        if fire.unfinished is not None:
            print(f"{fire.id}: not fired, because {fire.unfinished} is unfinished")
        else:
            print(f"{fire.id}" + ("" if fire.created else ": was there already"))
    if not fires:
        print("nothing is due")


def local(at_ms: int, zone: str) -> str | None:
    """The instant by the calendar and the clock of the zone, in ISO 8601; None: no calendar reaches it."""
    try:
        return local_time(zone, at_ms).isoformat(timespec="seconds" if at_ms % 1_000 == 0 else "milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def written(at_ms: int, zone: str) -> str:
    """The instant for people: by the clock of the zone, or in UTC."""
    shown = None if zone == UTC else local(at_ms, zone)
    return calendar(at_ms) if shown is None else f"{shown.replace('T', ' ')} {zone}"
