"""The doctor's look at a directory ledger: reads what is there, under its lock, and makes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from ...errors import FencepostError, LedgerFailed
from ...model.clock import Clock, wall_ms
from ...model.documents import MAX_DOCUMENT_BYTES, parse
from ...model.inputs import Input, is_name, parse_record
from ...model.receipts import Receipt
from ...model.records import Schedule
from ..closing import Closing
from ..file_checks import EXAMPLES, mode_findings, name_findings, network_findings
from ..inspection import Content, Entry, Finding
from .files import engine_errors, read_file
from .lock import LedgerLock
from .plans import MAX_BYTES as MAX_PLAN_BYTES
from .plans import read_paused, read_schedules
from .store import (
    AUDIT,
    CHANGED_IN_PLACE,
    JOBS,
    MAX_INPUT_BYTES,
    PAUSED,
    SCHEDULES,
    audit_and_torn_lines,
    closing_of,
    read_audit,
)
from .table import Table
from .transfer import RESERVE_BYTES

LOCK: Final = "ledger.lock"
ROOMS: Final = ("inputs", "effects")
FULL: Final = 0.9
"""Beyond this part of what an enqueue may fill, the end is near."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class DirectoryInspection:
    """One look; the lock is held while the jobs and the names of the files are read, and no longer."""

    def __init__(self, path: str, *, clock: Clock = wall_ms) -> None:
        self.location: Final = os.path.abspath(path)
        self._clock = clock
        self._open = ExitStack()
        self._rooms: dict[str, int] = {}
        self._names: dict[str, set[str]] = {room: set() for room in ROOMS}
        self._table = Table([])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def now_ms(self) -> int:
        """The clock that it was opened with."""
        return self._clock()

    def findings(self) -> Iterator[Finding]:
        """Files, modes, the file system; then whether jobs.json can be read, and how full it is."""
        if not os.path.isdir(self.location):
            raise LedgerFailed(f"{self.location}: there is no folder of that name; look at what --store says")
        yield from network_findings(self.location)
        yield from name_findings(os.path.join(self.location, name) for name in CHANGED_IN_PLACE)
        yield from self._folder_findings()
        _, torn = audit_and_torn_lines(self._folder(), self.location)
        if torn:
            yield Finding(
                "torn-audit",
                f"lines of audit.jsonl that are not whole (line {torn[0]} is one): a crash cut off who did what, or "
                "that the ledger was sealed",
                "what such an action was to do was not done, unless the file was cut later: compare it with a back-up",
                count=len(torn),
            )
        size = self._read()
        if size > FULL * (MAX_DOCUMENT_BYTES - RESERVE_BYTES):
            yield Finding(
                "almost-full",
                f"jobs.json has {size:,} bytes; beyond {MAX_DOCUMENT_BYTES - RESERVE_BYTES:,} enqueues are refused",
                "move to an SQL ledger: fencepost copy --from THIS --to jobs.db",
            )

    def entries(self) -> Iterator[Entry]:
        """Jobs in order of enqueue, then ids of which only files are there."""
        inputs, receipts = self._names["inputs"], self._names["effects"]
        for id, job in self._table.jobs.items():
            yield Entry(id, job, False, id in inputs, id in receipts)
        for id in sorted((inputs | receipts | self._table.purged.keys()) - self._table.jobs.keys()):
            yield Entry(id, None, id in self._table.purged, id in inputs, id in receipts)

    def contents(self, ids: Sequence[str]) -> Iterable[Content]:
        """Each id's two files."""
        for id in ids:
            try:
                yield Content(id, self._input(id), self._receipt(id))
            except FencepostError as error:
                yield Content(id, None, None, fault=str(error))

    def paused(self) -> list[str]:
        """By paused.json."""
        where = os.path.join(self.location, PAUSED)
        data = read_file(self._folder(), PAUSED, where=where, max_bytes=MAX_PLAN_BYTES)
        return sorted(read_paused(data, self.location))

    def schedules(self) -> list[Schedule]:
        """By schedules.json."""
        where = os.path.join(self.location, SCHEDULES)
        data = read_file(self._folder(), SCHEDULES, where=where, max_bytes=MAX_PLAN_BYTES)
        return list(read_schedules(data, self.location).values())

    def closing(self) -> Closing:
        """By the entries of the audit."""
        return closing_of(read_audit(self._folder(), self.location))

    # -- the files --

    def _folder_findings(self) -> Iterator[Finding]:
        files: list[str] = []
        strange: list[str] = []
        for folder, known in (
            (self.location, self._known_at_top),
            *((room, _known_in_room) for room in self._paths()),
        ):
            with os.scandir(folder) as found:
                for entry in found:
                    if entry.name.startswith("."):
                        continue  # a leftover of a crash, which goes by itself
                    if known(entry):
                        files.append(entry.path)
                    else:
                        strange.append(entry.path)
        yield from mode_findings(
            (self.location, *self._paths()),
            what="folders",
            remedy=f"chmod 700 {self.location} and those inside",
        )
        folders = {self.location, *self._paths()}
        yield from mode_findings(
            (file for file in sorted(files) if file not in folders), what="files", remedy="chmod 600 them"
        )
        if strange:
            yield Finding(
                "strange-files",
                "files, folders or links that are none of a ledger's",
                "find out who put them there, and move them away",
                tuple(sorted(strange)[:EXAMPLES]),
                len(strange),
            )
        missing = [room for room in ROOMS if not os.path.isdir(os.path.join(self.location, room))]
        if missing:
            yield Finding(
                "missing-folders",
                "folders of the ledger that are not there",
                "restore them from a back-up; where the ledger is new, the next command makes them",
                tuple(missing),
                len(missing),
            )

    def _paths(self) -> list[str]:
        paths = [os.path.join(self.location, room) for room in ROOMS]
        return [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]

    def _known_at_top(self, entry: os.DirEntry[str]) -> bool:
        if entry.name in ROOMS:
            return entry.is_dir(follow_symlinks=False)
        return entry.name in (JOBS, LOCK, AUDIT, SCHEDULES, PAUSED) and entry.is_file(follow_symlinks=False)

    def _read(self) -> int:
        """Read the jobs and the names of the files as of one instant; the size of jobs.json."""
        with ExitStack() as stack:
            if os.path.lexists(os.path.join(self.location, LOCK)):
                stack.enter_context(LedgerLock(os.path.join(self.location, LOCK), timeout_s=30).held())
            where = os.path.join(self.location, JOBS)
            data = read_file(self._folder(), JOBS, where=where, max_bytes=MAX_DOCUMENT_BYTES)
            self._table = Table([]) if data is None else Table.read(data, where=where)
            for path in self._paths():
                with engine_errors(path), os.scandir(path) as found:
                    self._names[os.path.basename(path)] = {
                        entry.name.removesuffix(".json") for entry in found if _known_in_room(entry)
                    }
        return 0 if data is None else len(data)

    def _input(self, id: str) -> Input | None:
        where, data = self._bytes("inputs", id)
        return None if data is None else parse_record(parse(data, what=where, max_bytes=MAX_INPUT_BYTES))

    def _receipt(self, id: str) -> Receipt | None:
        where, data = self._bytes("effects", id)
        return None if data is None else Receipt.from_document(parse(data, what=where))

    def _bytes(self, room: str, id: str) -> tuple[str, bytes | None]:
        name = f"{id}.json"
        where = os.path.join(self.location, room, name)
        return where, read_file(self._descriptor(room), name, where=where, max_bytes=MAX_INPUT_BYTES)

    def _folder(self) -> int:
        return self._descriptor("")

    def _descriptor(self, room: str) -> int:
        if room not in self._rooms:
            path = os.path.join(self.location, room)
            with engine_errors(path):
                self._rooms[room] = os.open(path, _FOLDER | (os.O_NOFOLLOW if room else 0))
            self._open.callback(os.close, self._rooms[room])
        return self._rooms[room]


def _known_in_room(entry: os.DirEntry[str]) -> bool:
    id, _, kind = entry.name.rpartition(".")
    return kind == "json" and is_name(id) and entry.is_file(follow_symlinks=False)
