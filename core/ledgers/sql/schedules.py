"""Pauses and schedules: what is stored of them, and the tick that fires and advances in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ...model import schedules as rules
from ...model import ticks
from ...model.inputs import NewJob
from ...model.job import Stamps, whole_ms
from ...model.records import Applied, Fire, Schedule
from ...model.ticks import Ticked
from ...model.zones import version
from ..operator import Operator
from ..rows import stamps_ms
from ..schedule_log import log_notices
from .audit import record
from .reads import text_of
from .transaction import Row, Transaction

_MS: Final = 1_000
_PART: Final = 1_000
"""How many jobs of a tick one enqueue stores."""

Enqueue: TypeAlias = Callable[[Sequence[NewJob]], object]
"""Enqueue jobs, of which none is bound, in the transaction."""


# -- pauses of queues --


def pause(transaction: Transaction, queue: str) -> bool:
    """Let no claim pick from the queue; False if it was paused."""
    return transaction.change("pause", (queue,)) == 1


def resume(transaction: Transaction, queue: str) -> bool:
    """End the pause; False if there was none."""
    return transaction.change("resume", (queue,)) == 1


def paused(transaction: Transaction) -> list[str]:
    """The queues that are paused, by name."""
    return [queue for (queue,) in transaction.rows("paused")]


# -- schedules --


def put(transaction: Transaction, schedule: Schedule) -> None:
    """Store the schedule in the place of the one that has its name."""
    lease_ms, max_attempts, backoff_ms, retention_ms = stamps_ms(schedule.stamps)
    transaction.change(
        "put_schedule",
        {
            "name": schedule.name,
            "every": schedule.every,
            "text": transaction.kept(schedule.text),
            "queue": schedule.queue,
            "effect": schedule.effect,
            "priority": schedule.priority,
            "expires_ms": None if schedule.expires_s is None else whole_ms(schedule.expires_s),
            "visibility_timeout_ms": lease_ms,
            "max_attempts": max_attempts,
            "backoff_base_ms": backoff_ms,
            "dead_letter_retention_ms": retention_ms,
            "next_ms": schedule.next_ms,
            "zone": schedule.zone,
            "missed": schedule.missed,
            "overlap": schedule.overlap,
            "paused": schedule.paused,
            "owner": schedule.owner,
            "since_ms": schedule.since_ms,
            "tz_version": schedule.tz_version,
            "last_id": schedule.last_id,
        },
    )


def register(transaction: Transaction, schedule: Schedule, now_ms: int) -> None:
    """Add or replace a checked schedule."""
    transaction.change("lock_schedules")
    put(transaction, rules.registered(find(transaction, schedule.name), schedule, now_ms))


def unregister(transaction: Transaction, name: str) -> bool:
    """Remove it; False if there is none."""
    return transaction.change("unregister_schedule", (name,)) == 1


def find(transaction: Transaction, name: str) -> Schedule | None:
    """The schedule of that name."""
    row = transaction.row("schedule", (name,))
    return None if row is None else schedule_of(row)


def schedules(transaction: Transaction) -> list[Schedule]:
    """All of them as they are stored, by name."""
    return [schedule_of(row) for row in transaction.rows("schedules")]


def apply(
    transaction: Transaction,
    wanted: Sequence[Schedule],
    owner: str,
    *,
    operator: Operator,
    dry_run: bool,
    now_ms: int,
) -> Applied:
    """Make the owner's schedules the wanted ones, and record each that changes."""
    transaction.change("lock_schedules")
    stored = {schedule.name: schedule for schedule in schedules(transaction)}
    done = rules.applied(stored.values(), wanted, owner)
    if dry_run:
        return done
    for schedule in wanted:
        if schedule.name not in done.unchanged:
            put(transaction, rules.registered(stored.get(schedule.name), schedule, now_ms))
    for name in done.removed:
        unregister(transaction, name)
    for action, names in (("add", done.added), ("change", done.changed), ("remove", done.removed)):
        for name in names:
            record(transaction, operator.entry(f"schedule-{action}", name, now_ms))
    return done


def pause_schedule(transaction: Transaction, name: str) -> bool:
    """Let it fire no more; False if there is none, or it was paused."""
    transaction.change("lock_schedules")
    before = find(transaction, name)
    if before is None or before.paused:
        return False
    put(transaction, rules.paused(before))
    return True


def resume_schedule(transaction: Transaction, name: str, now_ms: int) -> bool:
    """End the pause; False if there is none."""
    transaction.change("lock_schedules")
    before = find(transaction, name)
    if before is None or not before.paused:
        return False
    put(transaction, rules.resumed(before, now_ms))
    return True


# -- firing --


def tick(transaction: Transaction, now_ms: int, enqueue: Enqueue) -> list[Fire]:
    """Fire what has passed, schedule by schedule; one that cannot fire is reported and harms no other."""
    rows = transaction.rows("due_schedules", {"now_ms": now_ms, "tz_version": version()})
    ticked = ticks.tick(map(schedule_of, rows), now_ms, lambda ids: _known(transaction, ids))
    return _store(transaction, ticked, enqueue)


def run(transaction: Transaction, name: str, now_ms: int, enqueue: Enqueue) -> Fire | None:
    """Fire one schedule now; None: there is none of that name."""
    transaction.change("lock_schedules")
    schedule = find(transaction, name)
    if schedule is None:
        return None
    ticked = ticks.run_now(schedule, now_ms, lambda ids: _known(transaction, ids))
    return _store(transaction, ticked, enqueue)[0]


def _store(transaction: Transaction, ticked: Ticked, enqueue: Enqueue) -> list[Fire]:
    for start in range(0, len(ticked.jobs), _PART):
        enqueue(ticked.jobs[start : start + _PART])
    if ticked.advanced:
        transaction.change("advance_schedules", {"schedules": _notes(ticked.advanced)})
    log_notices(ticked.notices)
    return ticked.fires


def _known(transaction: Transaction, ids: Sequence[str]) -> dict[str, bool]:
    return {
        id: bool(unfinished)
        for id, unfinished in transaction.rows("known_ids", {"ids": transaction.names(ids)})
    }


def _notes(advanced: Iterable[Schedule]) -> str:
    return json.dumps(
        [
            {
                "name": one.name,
                "next_ms": one.next_ms,
                "since_ms": one.since_ms,
                "tz_version": one.tz_version,
                "last_id": one.last_id,
            }
            for one in advanced
        ]
    )


def schedule_of(row: Row) -> Schedule:
    """The schedule of a row with all columns."""
    name, every, text, queue, effect, priority, expires_ms, *rest = row
    next_ms, zone, missed, overlap, is_paused, owner, since_ms, tz_version, last_id = rest[4:]
    return Schedule(
        name,
        every,
        text_of(text),
        queue,
        effect,
        priority,
        expires_s=None if expires_ms is None else expires_ms / _MS,
        stamps=Stamps.from_ms(*rest[:4]),
        next_ms=next_ms,
        zone=zone,
        missed=missed,
        overlap=overlap,
        paused=bool(is_paused),
        owner=owner,
        since_ms=since_ms,
        tz_version=tz_version,
        last_id=last_id,
    )
