"""Moving a whole ledger into another one, of any kind: on the verbs that every kind has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from .errors import IdentityConflict, InvalidInput, LedgerSealed, Unsupported
from .ledger import Ledger, Row, Schedule
from .scheduler import check_schedule, parse_every

PAGE: Final = 200
"""Rows in one commit of the destination; each may carry a text of a megabyte."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What the destination holds now, and how much of it this run has brought there."""

    rows: int
    """Ids in all: jobs, purged ids, and inputs that wait for a job."""
    new: int
    schedules: int
    paused: int


def copy_ledger(
    source: Ledger,
    destination: Ledger,
    *,
    actor: str | None = None,
    now_ms: int | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Copied:
    """Seal ``source`` for ``destination``, and store there all that is kept of every id.

    Jobs keep their state, version, attempts, options and order; receipts, purged ids, pauses and schedules go along.
    The audit stays with the sealed source. Safe to run again: after a crash the copy goes on where it stopped.
    Workers may start on the destination when it has ended.

    Args:
        progress: is told after each commit how many rows have been passed.

    Raises:
        LedgerBusy: a lease is live in the source.
        LedgerSealed: the source was sealed for another destination, or the destination is sealed itself.
        Unsupported, LimitExceeded: the destination cannot keep all of it; none of it was stored there.
        IdentityConflict: the destination holds something else than a part of this copy.
    """
    if _is_same(source.location, destination.location):
        raise InvalidInput(f"{source.location} cannot be copied to itself: name another destination")
    sealed_for = destination.sealed_for()
    if sealed_for is not None:
        raise LedgerSealed(
            f"{destination.location} was itself sealed for {sealed_for}; copy to that one, or elsewhere"
        )
    # Before the seal, so that a copy that cannot be leaves the source in use; and after it, when nothing changes.
    _check(source, destination)
    source.seal(destination.location, actor=actor, now_ms=now_ms)
    _check(source, destination)

    reason = f"copied from {source.location}"
    paused, schedules = source.paused(), source.schedules()
    for queue in paused:  # before the jobs, of which none may be claimed
        destination.pause(queue, actor=actor, reason=reason, now_ms=now_ms)
    passed = new = 0
    for rows in _pages(source):
        new += destination.import_rows(rows)
        passed += len(rows)
        progress(passed)
    for schedule in schedules:
        _register(destination, schedule)
    return Copied(passed, new, len(schedules), len(paused))


def _is_same(one: str, other: str) -> bool:
    """Whether both name the same ledger, be it by a link: sealed for itself, it would never be of use again."""
    return one == other or (os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other))


def _check(source: Ledger, destination: Ledger) -> None:
    """Raise if the destination cannot keep what the source holds, or holds something else."""
    schedules, paused = source.schedules(), source.paused()
    if not destination.capabilities.has_schedules and (schedules or paused):
        names = [f"schedule {schedule.name!r}" for schedule in schedules]
        names += [f"pause of queue {queue!r}" for queue in paused]
        raise Unsupported(
            f"{destination.location} can keep no schedules and no pauses, and {source.location} has the "
            f"{', '.join(names)}: remove them first, or copy to an SQL ledger"
        )
    for schedule in schedules:
        try:
            check_schedule(schedule)
        except InvalidInput as error:
            raise InvalidInput(f"{source.location}: {error}; unregister it first") from error
    destination.check_room(row for rows in _pages(source) for row in rows)
    for rows in _pages(destination):
        ids = [row.id for row in rows]
        foreign = set(ids) - source.read_inputs(ids).keys() - source.receipts(ids).keys()
        if foreign:
            raise IdentityConflict(
                f"{destination.location} holds {min(foreign)!r}, which {source.location} does not: copy into an empty "
                "ledger, or go on with a copy of the same source"
            )
    strange = {schedule.name for schedule in destination.schedules()} - {item.name for item in schedules}
    if strange:
        raise IdentityConflict(
            f"{destination.location} has the schedule {min(strange)!r}, which {source.location} does not: copy into an "
            "empty ledger"
        )


def _register(destination: Ledger, schedule: Schedule) -> None:
    """With the same next boundary: a registration one period before it has just that."""
    next_ms = schedule.next_ms or 0
    registered_ms = max(0, next_ms - parse_every(schedule.every))
    destination.register_schedule(replace(schedule, next_ms=None), now_ms=registered_ms)


def _pages(ledger: Ledger) -> Iterator[list[Row]]:
    after: str | None = None
    while True:
        page = ledger.export_rows(after=after, limit=PAGE)
        if page.rows:
            yield page.rows
        after = page.next
        if after is None:
            return
