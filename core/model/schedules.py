"""Schedules (docs/reference/contract/schedules.md §7.8): what they must say, and how they are registered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ..errors import InvalidInput, LimitExceeded
from .checks import MAX_INT, check_int
from .inputs import NewJob, check_job, check_schedule_name, check_stamps
from .job import whole_ms
from .records import Applied, Schedule
from .timetable import EVERY, timetable, tz_version_of

MISSED: Final = ("all", "latest", "none")
OVERLAP: Final = ("allow", "skip")


def check_schedule(schedule: Schedule) -> Schedule:
    """Return ``schedule`` if every field keeps its rule, so that each of its jobs will.

    Raises:
        InvalidInput: names the field and the rule.
    """
    check_schedule_name(schedule.name)
    timetable(schedule.every, schedule.zone, 0)
    if schedule.missed is not None:
        _check_choice(schedule.missed, "missed", MISSED)
    _check_choice(schedule.overlap, "overlap", OVERLAP)
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


def missed_of(schedule: Schedule) -> str:
    """What becomes of the boundaries that were missed, where the schedule does not say."""
    if schedule.missed is not None:
        return schedule.missed
    return "all" if schedule.every.startswith(EVERY) else "latest"


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


def registered(before: Schedule | None, schedule: Schedule, now_ms: int) -> Schedule:
    """What is stored of a checked schedule in the place of the one that has its name.

    The next boundary stays while ``every`` and ``zone`` do, and a pause stays. A new ``@every`` begins one period from
    now.

    Raises:
        InvalidInput: the one that is there came with ``apply_schedules``, or with that of another owner.
        LimitExceeded: no clock reaches the first boundary.
    """
    if before is not None and before.owner != schedule.owner:
        raise _owned(before)
    stored = replace(schedule, stamps=schedule.stamps.whole())
    if before is not None:
        stored = replace(stored, paused=before.paused, last_id=before.last_id)
        if (before.every, before.zone) == (schedule.every, schedule.zone):
            return replace(
                stored, next_ms=before.next_ms, since_ms=before.since_ms, tz_version=before.tz_version
            )
    return begun(stored, now_ms, phase_ms=now_ms)


def begun(schedule: Schedule, now_ms: int, *, phase_ms: int) -> Schedule:
    """The schedule with its first boundary strictly after now.

    Raises:
        LimitExceeded: no clock reaches that.
    """
    table = timetable(schedule.every, schedule.zone, phase_ms)
    next_ms = table.after(now_ms)
    if next_ms is None:
        raise LimitExceeded(
            f"schedule {schedule.name!r}: its first boundary is beyond what any clock reaches"
        )
    return replace(schedule, next_ms=next_ms, since_ms=now_ms, tz_version=tz_version_of(table))


def paused(schedule: Schedule) -> Schedule:
    """The schedule with a pause; its boundaries go on without being fired."""
    return replace(schedule, paused=True)


def resumed(schedule: Schedule, now_ms: int) -> Schedule:
    """The schedule without its pause: the boundaries that passed meanwhile are skipped, and the phase is kept."""
    return replace(begun(schedule, now_ms, phase_ms=schedule.next_ms or 0), paused=False)


def applied(stored: Iterable[Schedule], wanted: Iterable[Schedule], owner: str) -> Applied:
    """What makes the owner's stored schedules the wanted ones; those of nobody, and of other owners, stay.

    Raises:
        InvalidInput: one of the wanted names is taken by a schedule that the owner does not own, or stands twice.
    """
    there = {schedule.name: schedule for schedule in stored}
    names: set[str] = set()
    result = Applied([], [], [], [])
    for schedule in sorted(wanted, key=lambda one: one.name):
        if schedule.name in names:
            raise InvalidInput(f"schedule {schedule.name!r} is given twice")
        names.add(schedule.name)
        before = there.get(schedule.name)
        if before is None:
            result.added.append(schedule.name)
        elif before.owner != owner:
            raise _owned(before)
        elif _says(before) == _says(schedule):
            result.unchanged.append(schedule.name)
        else:
            result.changed.append(schedule.name)
    result.removed.extend(
        sorted(name for name, one in there.items() if one.owner == owner and name not in names)
    )
    return result


def _says(schedule: Schedule) -> Schedule:
    """The schedule without what the ledger knows of it."""
    return replace(schedule, next_ms=None, paused=False, owner=None, stamps=schedule.stamps.whole())


def _owned(schedule: Schedule) -> InvalidInput:
    if schedule.owner is None:
        return InvalidInput(
            f"schedule {schedule.name!r} was added by hand: remove it first (fencepost schedule remove "
            f"{schedule.name}), or give the other one another name"
        )
    return InvalidInput(
        f"schedule {schedule.name!r} belongs to what was applied as {schedule.owner!r}: change it there and apply it "
        "again (fencepost schedule apply), or give the other one another name"
    )


def _check_choice(value: object, what: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInput(f"{what} is {value!r:.40}, it must be one of {', '.join(choices)}")
