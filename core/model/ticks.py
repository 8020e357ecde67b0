"""What a tick does with schedules: which boundaries fire, which are passed over, and where each goes on. Pure rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from ..errors import FencepostError
from .checks import MAX_INT
from .inputs import NewJob
from .records import Fire, Schedule
from .schedules import check_schedule, fired_job, missed_of
from .timetable import LATE_MS, Every, Timetable, boundaries, timetable, tz_version_of
from .zones import version

Known: TypeAlias = Mapping[str, bool]
"""The ids that are bound already; True of those whose job is unfinished: queued, running or held."""


class Due(NamedTuple):
    """A schedule that a tick has to do with, and where it goes on."""

    schedule: Schedule
    boundaries: list[int]
    next_ms: int | None
    since_ms: int | None
    tz_version: str | None
    error: str | None = None
    """Why it cannot fire; it then stays as it is."""
    notice: str | None = None
    """What became of it that people should know."""


class Ticked(NamedTuple):
    """The result of a tick, to be stored in one step, or jobs first."""

    fires: list[Fire]
    jobs: list[NewJob]
    advanced: list[Schedule]
    """The schedules that have changed, as they are stored now."""
    notices: list[str]


def tick(schedules: Iterable[Schedule], now_ms: int, known: Callable[[list[str]], Known]) -> Ticked:
    """Fire what has passed of schedules that are not paused; one that cannot fire harms no other.

    ``known`` is asked once, about all ids that matter.
    """
    dues = [due(schedule, now_ms) for schedule in schedules if concerns(schedule, now_ms)]
    asked = [id for one in dues for id in _ids(one)]
    bound = known(asked) if asked else {}
    ticked = Ticked([], [], [], [])
    for one in dues:
        before = one.schedule
        if one.error is not None:
            ticked.fires.append(Fire(before.name, "", before.next_ms or 0, created=False, error=one.error))
            continue
        notes = one.next_ms, one.since_ms, one.tz_version, _fire(one, bound, ticked)
        if notes != (before.next_ms, before.since_ms, before.tz_version, before.last_id):
            ticked.advanced.append(_noted(before, *notes))
        if one.notice is not None:
            ticked.notices.append(one.notice)
    return ticked


def concerns(schedule: Schedule, now_ms: int) -> bool:
    """Whether a tick looks at the schedule: it is due, or its next boundary can be wrong. SQL asks the same."""
    if schedule.paused:
        return False
    older = schedule.tz_version is not None and schedule.tz_version < version()
    return (schedule.next_ms or 0) <= now_ms or (schedule.since_ms or 0) > now_ms or older


def due(schedule: Schedule, now_ms: int) -> Due:
    """Which boundaries have passed, and where the schedule goes on."""
    next_ms, since_ms = schedule.next_ms or 0, schedule.since_ms
    fault = fault_of(schedule)
    if fault is not None:
        return Due(schedule, [], schedule.next_ms, since_ms, schedule.tz_version, error=fault)
    table = timetable(schedule.every, schedule.zone, next_ms)
    sooner_ms, notice = _next_again(schedule, table, now_ms), None
    if sooner_ms != next_ms:
        if (since_ms or 0) > now_ms:
            notice = (
                f"the schedule {schedule.name!r} was registered or fired when the clock was ahead: its next time was "
                f"{next_ms} and is now {sooner_ms} (milliseconds)"
            )
        since_ms = min(since_ms or 0, now_ms)
    tz_version = tz_version_of(table)
    if sooner_ms > now_ms:
        return Due(schedule, [], sooner_ms, since_ms, tz_version, notice=notice)
    fired = boundaries(table, sooner_ms, now_ms, missed_of(schedule))
    following_ms = table.after(now_ms)
    # Where the calendar has ended there is no next boundary: the schedule then never fires again.
    next_ms = MAX_INT if following_ms is None else following_ms
    return Due(schedule, fired, next_ms, now_ms, tz_version, notice=notice)


def fault_of(schedule: Schedule) -> str | None:
    """Why a stored schedule cannot fire here: another program, or a hand, wrote it, or a newer tz database was used."""
    try:
        check_schedule(schedule)
        mine = tz_version_of(timetable(schedule.every, schedule.zone, 0))
    except FencepostError as error:
        return str(error)
    if mine is not None and schedule.tz_version is not None and schedule.tz_version > mine:
        return (
            f"schedule {schedule.name!r}: its next time was computed with the tz database {schedule.tz_version}, and "
            f"this program has {mine}, whose times may be others; upgrade the package tzdata here"
        )
    return None


def soonest(schedules: Iterable[Schedule]) -> int | None:
    """The next boundary of those that can fire: one that cannot would be due for ever."""
    due_ms = [
        one.next_ms
        for one in schedules
        if one.next_ms is not None and not one.paused and fault_of(one) is None
    ]
    return min(due_ms, default=None)


def run_now(schedule: Schedule, now_ms: int, known: Callable[[list[str]], Known]) -> Ticked:
    """Fire the schedule by hand, between its boundaries, which stay as they are; also while it is paused."""
    fault = fault_of(schedule)
    if fault is not None:
        return Ticked([Fire(schedule.name, "", now_ms, created=False, error=fault)], [], [], [])
    one = Due(schedule, [now_ms], schedule.next_ms, schedule.since_ms, schedule.tz_version)
    ticked = Ticked([], [], [], [])
    last_id = _fire(one, known(_ids(one)), ticked)
    return ticked._replace(advanced=[replace(schedule, last_id=last_id)])


def _noted(
    schedule: Schedule, next_ms: int | None, since_ms: int | None, tz_version: str | None, last_id: str | None
) -> Schedule:
    return replace(schedule, next_ms=next_ms, since_ms=since_ms, tz_version=tz_version, last_id=last_id)


def _next_again(schedule: Schedule, table: Timetable, now_ms: int) -> int:
    """The next boundary, computed again where the stored one can be wrong.

    It is, where the clock was ahead when it was stored, and then lies further ahead than it can; and where an older tz
    database made it.
    """
    next_ms, since_ms = schedule.next_ms or 0, schedule.since_ms or 0
    if isinstance(table, Every):
        return next_ms if next_ms - now_ms <= table.period_ms else table.after(now_ms) or next_ms
    mine = tz_version_of(table)
    older = mine is not None and schedule.tz_version is not None and schedule.tz_version < mine
    if not older and since_ms <= now_ms + LATE_MS:  # a clock that is only adjusted changes nothing
        return next_ms
    again_ms = table.after(min(since_ms, now_ms))
    if again_ms is None:
        return next_ms
    return again_ms if older else min(again_ms, next_ms)


def _ids(due: Due) -> list[str]:
    """The ids that decide what fires: of the boundaries, and of what was fired last."""
    ids = [f"{due.schedule.name}-{boundary_ms}" for boundary_ms in due.boundaries]
    if ids and due.schedule.overlap == "skip" and due.schedule.last_id is not None:
        ids.append(due.schedule.last_id)
    return ids


def _fire(due: Due, known: Known, ticked: Ticked) -> str | None:
    """Add the fires and the jobs of one schedule; returns the id that was fired last."""
    schedule, last_id = due.schedule, due.schedule.last_id
    unfinished = last_id is not None and known.get(last_id, False)
    for boundary_ms in due.boundaries:
        job = fired_job(schedule, boundary_ms)
        if job.id in known:
            # An id that is bound counts as fired, whatever it is bound to, and though its job was purged.
            ticked.fires.append(Fire(schedule.name, job.id, boundary_ms, created=False))
            last_id, unfinished = job.id, known[job.id]
        elif unfinished and schedule.overlap == "skip":
            ticked.fires.append(Fire(schedule.name, job.id, boundary_ms, created=False, unfinished=last_id))
        else:
            ticked.jobs.append(job)
            ticked.fires.append(Fire(schedule.name, job.id, boundary_ms, created=True))
            last_id, unfinished = job.id, True
    return last_id
