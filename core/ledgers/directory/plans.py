"""The schedules and pauses of a directory ledger: two files beside ``jobs.json``, each written whole.

schedules.json   an array of schedules, by name; fields that have their usual value are left out
paused.json      an array of the names of paused queues
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any, Final

from ...errors import InvalidInput, LedgerCorrupt, LimitExceeded
from ...model import ticks
from ...model.documents import compact, parse
from ...model.inputs import is_name
from ...model.job import COMPLETED, DEAD, Stamps
from ...model.records import Fire, Schedule
from ...model.ticks import Ticked
from ..schedule_log import log_notices
from .enqueue import enqueue
from .store import PAUSED, SCHEDULES, Store
from .table import Table

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of schedules.json, which holds the text of each schedule."""

_FIELDS: Final = {field.name: field.type for field in fields(Schedule)}
_STAMPS: Final = frozenset(field.name for field in fields(Stamps))
_ALWAYS: Final = frozenset({"name", "every", "text", "next_ms"})
_USUAL: Final = Schedule("", "", "")
_WHOLE: Final = frozenset({"priority", "next_ms", "since_ms"})


class Plans:
    """Reads and writes the files of schedules and pauses under the store's lock; parses a file only when it changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._schedules: tuple[object, dict[str, Schedule]] = None, {}
        self._paused: tuple[object, frozenset[str]] = None, frozenset()

    def paused(self) -> frozenset[str]:
        """The queues that are paused."""
        identity = self._store.side_identity(PAUSED)
        if identity != self._paused[0]:
            self._paused = identity, read_paused(self._store.read_side(PAUSED, MAX_BYTES), self._store.path)
        return self._paused[1]

    def put_paused(self, queues: Iterable[str]) -> None:
        """Let these queues be paused, and no others."""
        self._store.write_side(PAUSED, f"{compact(sorted(queues))}\n".encode())

    def schedules(self) -> dict[str, Schedule]:
        """All schedules, by name."""
        identity = self._store.side_identity(SCHEDULES)
        if identity != self._schedules[0]:
            data = self._store.read_side(SCHEDULES, MAX_BYTES)
            self._schedules = identity, read_schedules(data, self._store.path)
        return dict(self._schedules[1])

    def put_schedules(self, schedules: dict[str, Schedule]) -> None:
        """Let there be these schedules, and no others.

        Raises:
            LimitExceeded: together they are too large for the file.
        """
        rows = ",\n".join(f"  {compact(_document(schedules[name]))}" for name in sorted(schedules))
        data = f"[\n{rows}\n]\n".encode()
        if len(data) > MAX_BYTES:
            raise LimitExceeded(
                f"{self._store.path}: these schedules would fill schedules.json beyond {MAX_BYTES:,} bytes; use an "
                "SQL ledger (--store jobs.db)"
            )
        self._store.write_side(SCHEDULES, data)


def tick(store: Store, plans: Plans, table: Table, now_ms: int) -> Ticked:
    """What a tick does; nothing is stored yet."""
    stored = plans.schedules()
    return ticks.tick(
        (stored[name] for name in sorted(stored)), now_ms, lambda ids: _known(store, table, stored, ids)
    )


def run(store: Store, plans: Plans, table: Table, name: str, now_ms: int) -> Ticked | None:
    """What a run of one schedule does; None: there is none of that name."""
    stored = plans.schedules()
    if name not in stored:
        return None
    return ticks.run_now(stored[name], now_ms, lambda ids: _known(store, table, stored, ids))


def save(store: Store, plans: Plans, table: Table, ticked: Ticked) -> list[Fire]:
    """Store the jobs of a tick, then advance the schedules.

    A crash between the two steps repeats nothing: the next tick finds the ids of the boundaries that have fired.
    """
    if ticked.jobs:
        enqueue(store, table, ticked.jobs)
        store.write(table)
    if ticked.advanced:
        plans.put_schedules(plans.schedules() | {one.name: one for one in ticked.advanced})
    log_notices(ticked.notices)
    return ticked.fires


def _known(store: Store, table: Table, schedules: dict[str, Schedule], ids: Sequence[str]) -> dict[str, bool]:
    """The ids that are bound, and whether their jobs are unfinished.

    An input of the schedule's own text without a job is what a crash left of an enqueue, which adopts it: it is free.
    """
    known = {}
    for id in ids:
        job = table.jobs.get(id)
        if job is not None:
            known[id] = job.state not in (COMPLETED, DEAD)
        elif id in table.purged:
            known[id] = False
        elif is_name(id) and (found := store.input(id)) is not None:
            schedule = schedules.get(id.rpartition("-")[0])
            if schedule is None or found.text != schedule.text:
                known[id] = False
    return known


# -- the files' contents --


def read_paused(data: bytes | None, path: str) -> frozenset[str]:
    """The names in paused.json.

    Raises:
        LedgerCorrupt: it is no array of names.
    """
    found = _parse(data, path, PAUSED)
    if not all(is_name(name) for name in found):
        raise _corrupt(path, PAUSED, "it must be an array of names of queues")
    return frozenset(found)


def read_schedules(data: bytes | None, path: str) -> dict[str, Schedule]:
    """The schedules in schedules.json, whether or not each can fire.

    Raises:
        LedgerCorrupt: it is no array of schedules.
    """
    schedules: dict[str, Schedule] = {}
    for place, row in enumerate(_parse(data, path, SCHEDULES), 1):
        try:
            schedule = _schedule(row)
        except InvalidInput as error:
            raise _corrupt(path, SCHEDULES, f"schedule {place}: {error}") from error
        if schedule.name in schedules:
            raise _corrupt(path, SCHEDULES, f"the name {schedule.name!r} stands twice")
        schedules[schedule.name] = schedule
    return schedules


def _document(schedule: Schedule) -> dict[str, Any]:
    """The schedule as the object of the file: what is usual is left out."""
    stamps = {name: value for name, value in asdict(schedule.stamps).items() if value is not None}
    shown = {
        name: value
        for name, value in asdict(schedule).items()
        if name in _ALWAYS or (name != "stamps" and value != getattr(_USUAL, name))
    }
    return shown | ({"stamps": stamps} if stamps else {})


def _schedule(row: object) -> Schedule:
    if not isinstance(row, dict) or not _ALWAYS <= row.keys() <= _FIELDS.keys():
        raise InvalidInput(f"must be an object with {', '.join(sorted(_ALWAYS))} and no unknown fields")
    for name, value in row.items():
        if name in _WHOLE:
            right = type(value) is int and (name == "priority" or value >= 0)
        elif name == "stamps":
            right = isinstance(value, dict) and value.keys() <= _STAMPS
        elif name == "paused":
            right = isinstance(value, bool)
        elif name == "expires_s":
            right = type(value) in (int, float)
        else:
            right = isinstance(value, str)
        if not right:
            raise InvalidInput(f"{name} is {value!r:.80}")
    return Schedule(**{**row, "stamps": Stamps(**row.get("stamps", {}))})


def _parse(data: bytes | None, path: str, name: str) -> list[Any]:
    if data is None:
        return []
    try:
        found = parse(data, what=f"{path}/{name}", max_bytes=MAX_BYTES)
    except InvalidInput as error:
        raise _corrupt(path, name, str(error)) from error
    if not isinstance(found, list):
        raise _corrupt(path, name, "it must be a JSON array")
    return found


def _corrupt(path: str, name: str, why: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"{path}/{name}: {why}; the file is left as it is: restore it from a copy, or mend it while no program has "
        "the ledger open"
    )
