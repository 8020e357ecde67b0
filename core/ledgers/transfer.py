"""Moving a whole ledger into another one, of any kind: on the verbs that every kind has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import IdentityConflict, InvalidInput, Unsupported
from ..model.job import RUNNING, lapsed
from ..model.query import JobQuery
from ..model.records import Row
from ..model.schedules import check_schedule
from .closing import COPY_END, Closing, live_lease
from .open import parse_store
from .protocol import Ledger

PAGE: Final = 200
"""Rows in one commit of the destination; each may carry a text of a megabyte."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What the destination holds now, and how much of it this run has brought there."""

    rows: int
    """Ids in all: of jobs, purged ones, and those of which only an input or a receipt is kept."""
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
    The audit stays with the sealed source. Until all has come the destination refuses work: a job whose receipt is
    still to come must not be done again. Safe to run again: after a crash the copy goes on where it stopped, and a
    copy that has ended is left as it is.

    Args:
        progress: is told after each commit how many rows have been passed.

    Raises:
        LedgerBusy: a lease is live in the source.
        LedgerSealed: either ledger was sealed for another one, or waits for the rest of another copy.
        Unsupported, LimitExceeded: the destination cannot keep all of it; none of it was stored there.
        IdentityConflict: the destination holds something else than a part of this copy.
    """
    if _is_within(source.location, destination.location):
        raise InvalidInput(
            f"{source.location} cannot be copied to itself or into its own folder: name another destination"
        )
    if _has_ended(source, destination):
        return _as_ended(source)
    # First of all, so that a copy that cannot be leaves both as they are; and after the seal, when nothing changes.
    _check_source(source, destination, now_ms)
    _check_room(source, destination)
    try:
        return _copy(source, destination, actor=actor, now_ms=now_ms, progress=progress)
    except IdentityConflict:
        if _has_ended(source, destination):  # by another process, which has done the same meanwhile
            return _as_ended(source)
        raise


def _copy(
    source: Ledger,
    destination: Ledger,
    *,
    actor: str | None,
    now_ms: int | None,
    progress: Callable[[int], None],
) -> Copied:
    # Closed before the source is sealed: nothing can come into an empty ledger for which a source was given up.
    destination.begin_copy(source.location, actor=actor, now_ms=now_ms)
    source.seal(destination.location, actor=actor, now_ms=now_ms)
    _check_room(source, destination)
    passed = new = 0
    for rows in _pages(source):
        new += destination.import_rows(rows, copy_of=source.location)
        passed += len(rows)
        progress(passed)
    schedules, paused = source.schedules(), source.paused()
    destination.end_copy(source.location, paused=paused, schedules=schedules, actor=actor, now_ms=now_ms)
    return Copied(passed, new, len(schedules), len(paused))


def _is_within(source: str, destination: str) -> bool:
    """Whether the destination is the source itself, be it by a link, or lies in its folder, which may be deleted."""
    (kind, old), (other_kind, new) = parse_store(source), parse_store(destination)
    if "postgres" in (kind, other_kind):
        return source == destination
    if os.path.exists(old) and os.path.exists(new) and os.path.samefile(old, new):
        return True
    return Path(os.path.realpath(new)).is_relative_to(os.path.realpath(old))


def _has_ended(source: Ledger, destination: Ledger) -> bool:
    """Whether this very copy was made before: nothing of it is to be compared with what became of it since."""
    if source.sealed_for() != destination.location or destination.copying_from() is not None:
        return False
    return any(entry.action == COPY_END for entry in destination.audit(id=source.location))


def _as_ended(source: Ledger) -> Copied:
    return Copied(sum(len(rows) for rows in _pages(source)), 0, len(source.schedules()), len(source.paused()))


def _check_source(source: Ledger, destination: Ledger, now_ms: int | None) -> None:
    """Raise what the seal would: it comes after the destination was closed, which it would then be for nothing."""
    sealed_for = source.sealed_for()
    if sealed_for == destination.location:
        return
    Closing(sealed_for, source.copying_from()).refuse(source.location)
    at_ms = source.now_ms() if now_ms is None else now_ms
    after: str | None = None
    while True:
        page = source.jobs(JobQuery(states=(RUNNING,), after=after))
        for job in page.jobs:
            if not lapsed(job, at_ms):
                raise live_lease(source.location, job.id)
        after = page.next
        if after is None:
            return


def _check_room(source: Ledger, destination: Ledger) -> None:
    """Raise if the destination cannot keep what the source holds."""
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


def _pages(ledger: Ledger) -> Iterator[list[Row]]:
    after: str | None = None
    while True:
        page = ledger.export_rows(after=after, limit=PAGE)
        if page.rows:
            yield page.rows
        after = page.next
        if after is None:
            return
