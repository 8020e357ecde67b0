"""The folder of a directory ledger: its files read and written under the lock, and nothing about jobs' rules.

DIR/ledger.lock   DIR/jobs.json   DIR/inputs/<id>.json   DIR/effects/<id>.json   DIR/audit.jsonl
DIR/schedules.json   DIR/paused.json
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Final, NoReturn

from ...errors import (
    InvalidInput,
    LedgerCorrupt,
    LedgerFailed,
    LedgerReplaced,
)
from ...model.documents import (
    MAX_DOCUMENT_BYTES,
    compact,
    parse,
    readable,
)
from ...model.inputs import Input, check_name, parse_record
from ...model.receipts import Receipt
from ...model.records import AuditEntry
from ..closing import (
    COPY_BEGIN,
    COPY_END,
    SEAL,
    Closing,
)
from ..crash import Step
from ..file_checks import check_one_name, is_mount_point
from ..names import is_sqlite_name
from .files import (
    append_line,
    clean_leftovers,
    engine_errors,
    link_file,
    open_file,
    open_folder,
    read_descriptor,
    read_file,
    replace_file,
)
from .lock import LedgerLock
from .table import Table

JOBS: Final = "jobs.json"
AUDIT: Final = "audit.jsonl"
SCHEDULES: Final = "schedules.json"
PAUSED: Final = "paused.json"
CHANGED_IN_PLACE: Final = ("ledger.lock", AUDIT)
"""These files must have one name: others are written anew under theirs, or never change."""
MAX_INPUT_BYTES: Final = 6_100_000
"""A text of 1,000,000 control characters takes six bytes for each in JSON."""
_AUDIT_FIELDS: Final = tuple(field.name for field in fields(AuditEntry))
MAX_AUDIT_BYTES: Final = 256 * 1024 * 1024


class Store:
    """Files and lock; safe to share between threads, and across a fork."""

    def __init__(self, path: str, *, lock_timeout_s: float, step: Step) -> None:
        self.path = os.path.abspath(path)
        self.step = step
        with engine_errors(self.path):
            if os.path.lexists(self.path) and not os.path.isdir(self.path):
                raise LedgerFailed(
                    f"{self.path}: is a file; a directory ledger is a folder, and a SQLite ledger's name ends "
                    "in .db or is given as sqlite:PATH"
                )
            for name in CHANGED_IN_PLACE:
                check_one_name(os.path.join(self.path, name))
            if is_mount_point(os.path.join(self.path, JOBS)):
                raise LedgerFailed(
                    f"{os.path.join(self.path, JOBS)}: is mounted as a single file, which cannot be replaced as every "
                    f"commit does; mount the folder {self.path} instead"
                )
            self._folder = open_folder(self.path)
            self._inputs = open_folder("inputs", parent=self._folder)
            self._effects = open_folder("effects", parent=self._folder)
            for folder in (self._folder, self._inputs, self._effects):
                clean_leftovers(folder)
            # Of descriptors that stay open, so that no other folder can get these numbers.
            self._identities = {
                "": _identity(os.fstat(self._folder)),
                "inputs": _identity(os.fstat(self._inputs)),
                "effects": _identity(os.fstat(self._effects)),
            }
        self._lock_timeout_s = lock_timeout_s
        self._lock = self._new_lock()
        self._pid = os.getpid()
        self._table: Table | None = None
        self._held: int | None = None
        self._audit_seen: tuple[int, int, int] | None = None
        self._closing = Closing()
        self._receipts_to_sync = False

    @property
    def location(self) -> str:
        """The path as it names a folder: where its ending means a SQLite file, a slash says so."""
        return f"{self.path}/" if is_sqlite_name(self.path) else self.path

    def close(self) -> None:
        """Let go of every descriptor."""
        if self._folder < 0:
            return
        self._forget()
        for folder in (self._folder, self._inputs, self._effects):
            os.close(folder)
        self._folder = self._inputs = self._effects = -1

    def _new_lock(self) -> LedgerLock:
        return LedgerLock(os.path.join(self.path, "ledger.lock"), timeout_s=self._lock_timeout_s)

    # -- jobs.json --

    @contextlib.contextmanager
    def table(self) -> Iterator[Table]:
        """Hold the lock and work on the jobs; what was changed is written at the end of the block.

        An error in the block, or in writing, leaves the file as it was.
        """
        if self._folder < 0:
            raise LedgerFailed(f"{self.path}: the ledger was closed; open it again")
        if self._pid != os.getpid():
            # A thread of the parent may have held the lock, and been in the middle of a change.
            self._lock, self._pid = self._new_lock(), os.getpid()
            self._forget()
        # Before the lock, too: acquiring it would make a folder anew that was moved away.
        self._check_folder("")
        with self._lock.held():
            for room in self._identities:
                self._check_folder(room)
            table = self._current()
            try:
                yield table
                if table.changed:
                    self.write(table)
                self.sync_receipts()
            except BaseException:
                if table.changed:
                    self._forget()
                raise

    def identity(self) -> tuple[int, int] | None:
        """The identity of jobs.json, which changes with every commit; None where there is no such file yet."""
        try:
            found = os.stat(JOBS, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return _identity(found)

    def news(self) -> tuple[object, object]:
        """What changes with every commit that can give a claim something to do."""
        return self.identity(), self.side_identity(PAUSED)

    # -- the files beside jobs.json --

    def read_side(self, name: str, max_bytes: int) -> bytes | None:
        """The bytes of one of them; None: there is none."""
        where = os.path.join(self.path, name)
        return read_file(self._folder, name, where=where, max_bytes=max_bytes)

    def write_side(self, name: str, data: bytes) -> None:
        """Put these bytes in its place, whole and durably."""
        with engine_errors(os.path.join(self.path, name)):
            os.close(replace_file(self._folder, name, data, step=self.step))

    def side_identity(self, name: str) -> tuple[int, int, int] | None:
        """What tells one version of it from another; None: there is none."""
        try:
            found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    # -- jobs.json in memory --

    def _current(self) -> Table:
        # What was parsed is used again only while the file is held open: a free inode number is soon reused.
        held = None if self._held is None else _identity(os.fstat(self._held))
        if self._table is not None and held is not None and self.identity() == held:
            return self._table
        self._forget()
        where = os.path.join(self.path, JOBS)
        descriptor = open_file(self._folder, JOBS, where=where)
        if descriptor is None:
            self._table = Table([])
            return self._table
        try:
            with engine_errors(where):
                data = read_descriptor(descriptor, where=where, max_bytes=MAX_DOCUMENT_BYTES)
            self._table = Table.read(data, where=where)
        except BaseException:
            os.close(descriptor)
            raise
        self._held = descriptor
        return self._table

    def write(self, table: Table) -> None:
        """Write the jobs now, before something that depends on them."""
        with engine_errors(os.path.join(self.path, JOBS)):
            descriptor = replace_file(
                self._folder,
                JOBS,
                table.document(MAX_DOCUMENT_BYTES),
                step=self.step,
                first=self.sync_receipts,  # no job is completed by a receipt that a power cut could take
            )
        self._hold(descriptor)
        table.changed = False

    def _forget(self) -> None:
        self._hold(None)
        self._table = None

    def _hold(self, descriptor: int | None) -> None:
        # Closed last: at no instant may a fork leave a closed descriptor here.
        former, self._held = self._held, descriptor
        if former is not None:
            os.close(former)

    def _check_folder(self, room: str) -> None:
        """Check that the path still leads to the folder that was opened; a back-up may have been put there."""
        where = os.path.join(self.path, room) if room else self.path
        with engine_errors(where):
            try:
                there = os.stat(room, dir_fd=self._folder) if room else os.stat(self.path)
            except FileNotFoundError as error:
                raise LedgerFailed(
                    f"{where}: the folder was removed or moved away while it was in use; put it back, or open the "
                    "ledger anew"
                ) from error
        if _identity(there) != self._identities[room]:
            raise LedgerReplaced(
                f"{where}: the folder was replaced by another one while it was in use; open the ledger anew"
            )

    # -- inputs and receipts: written once, never replaced --

    def input(self, id: str) -> Input | None:
        """The input stored under the id, or None.

        Raises:
            LedgerCorrupt: what is stored is no input, or another id's.
        """
        where, data = self._read(self._inputs, "inputs", id, MAX_INPUT_BYTES)
        if data is None:
            return None
        try:
            found = parse_record(parse(data, what=where, max_bytes=MAX_INPUT_BYTES))
        except InvalidInput as error:
            raise LedgerCorrupt(f"{where}: {_bare(error, where)}; restore it from a copy") from error
        if found.id != id:
            raise LedgerCorrupt(f"{where}: holds the input of {found.id!r}; restore it from a copy")
        return found

    def missing_input(self, id: str) -> NoReturn:
        """Say that a job's input is not there."""
        raise LedgerCorrupt(
            f"{self.path}: the job {id!r} has no input (inputs/{id}.json is missing); restore the file from a copy"
        )

    def add_inputs(self, inputs: list[Input]) -> None:
        """Store inputs whose ids are free, or hold the same text already."""
        with engine_errors(os.path.join(self.path, "inputs")):
            for item in inputs:
                data = readable({"id": item.id, "text": item.text})
                link_file(self._inputs, f"{item.id}.json", data, step=self.step, kind="input")
            os.fsync(self._inputs)
        self.step("inputs: durable")

    def receipt(self, id: str) -> Receipt | None:
        """The receipt stored under the id, or None.

        Raises:
            LedgerCorrupt: what is stored is no receipt.
        """
        where, data = self._read(self._effects, "effects", id, MAX_DOCUMENT_BYTES)
        if data is None:
            return None
        try:
            return Receipt.from_document(parse(data, what=where))
        except InvalidInput as error:
            raise LedgerCorrupt(
                f"{where}: {_bare(error, where)}; the file is left as it is. Restore it from a copy; "
                "`fencepost doctor` checks the rest"
            ) from error

    def add_receipts(self, receipts: Sequence[Receipt]) -> list[bool]:
        """Store the receipts; False for each whose id has one already, whatever it says.

        Their names are durable after ``sync_receipts``.
        """
        if not receipts:
            return []
        with engine_errors(os.path.join(self.path, "effects")):
            linked = [
                link_file(
                    self._effects,
                    f"{check_name(receipt.id, 'id')}.json",
                    readable(receipt.document()),
                    step=self.step,
                    kind="receipt",
                )
                for receipt in receipts
            ]
        # Also where one was there: its writer may not have come as far as that.
        self._receipts_to_sync = True
        return linked

    def sync_receipts(self) -> None:
        """Make the names of the stored receipts durable.

        When jobs.json is written as well, this comes between its fsync and its rename: one commit of the file system
        carries both, where the folder's fsync by itself would cost another.
        """
        if not self._receipts_to_sync:
            return
        self._receipts_to_sync = (
            False  # before the fsync: what another thread links meanwhile is not covered by it
        )
        try:
            with engine_errors(os.path.join(self.path, "effects")):
                os.fsync(self._effects)
        except BaseException:
            self._receipts_to_sync = True
            raise
        self.step("receipt: durable")

    def input_ids(self) -> list[str]:
        """Every id that has an input, sorted."""
        return self._ids(self._inputs, "inputs")

    def receipt_ids(self) -> list[str]:
        """Every id that has a receipt, sorted."""
        return self._ids(self._effects, "effects")

    def _ids(self, folder: int, room: str) -> list[str]:
        with engine_errors(os.path.join(self.path, room)):
            names = os.listdir(folder)
        return sorted(name[:-5] for name in names if name.endswith(".json") and not name.startswith("."))

    def _read(self, folder: int, room: str, id: str, max_bytes: int) -> tuple[str, bytes | None]:
        name = f"{check_name(id, 'id')}.json"
        where = os.path.join(self.path, room, name)
        return where, read_file(folder, name, where=where, max_bytes=max_bytes)

    # -- audit.jsonl: one line a manual action, written before the action itself --

    def record(self, entry: AuditEntry) -> None:
        """Add one manual action."""
        with engine_errors(os.path.join(self.path, AUDIT)):
            append_line(self._folder, AUDIT, compact(asdict(entry)).encode("utf-8"))
        self.step("audit: durable")

    def audit(self) -> list[AuditEntry]:
        """Every action on record, oldest first."""
        return read_audit(self._folder, self.path)

    def closing(self) -> Closing:
        """What closes the store; the audit is read again only when it has changed."""
        with engine_errors(os.path.join(self.path, AUDIT)):
            seen = self.side_identity(AUDIT)
        if seen is None:
            return Closing()
        if seen != self._audit_seen:
            self._closing, self._audit_seen = closing_of(self.audit()), seen
        return self._closing


def _identity(found: os.stat_result) -> tuple[int, int]:
    return (found.st_dev, found.st_ino)


def closing_of(audit: Iterable[AuditEntry]) -> Closing:
    """What closes a store with this audit: only one copy at a time comes, and a store is sealed once."""
    sealed_for = copying_from = None
    for entry in audit:
        if entry.action == SEAL:
            sealed_for = sealed_for or entry.id
        elif entry.action == COPY_BEGIN:
            copying_from = entry.id
        elif entry.action == COPY_END:
            copying_from = None
    return Closing(sealed_for, copying_from)


def read_audit(folder: int, path: str) -> list[AuditEntry]:
    """The lines of audit.jsonl, oldest first; one that a crash left unfinished is passed over."""
    return audit_and_torn_lines(folder, path)[0]


def audit_and_torn_lines(folder: int, path: str) -> tuple[list[AuditEntry], list[int]]:
    """The entries, and the numbers of the lines that a crash left unfinished.

    Raises:
        LedgerCorrupt: a whole line is no entry.
    """
    where = os.path.join(path, AUDIT)
    data = read_file(folder, AUDIT, where=where, max_bytes=MAX_AUDIT_BYTES)
    entries: list[AuditEntry] = []
    torn: list[int] = []
    for number, line in enumerate((data or b"").split(b"\n"), 1):
        if not line:
            continue
        try:
            entries.append(_audit_entry(json.loads(line)))
        except ValueError as error:
            cut_off = not line.endswith(b"}") or "Unterminated string" in str(error)
            if isinstance(error, json.JSONDecodeError) and cut_off:
                torn.append(number)
                continue
            raise LedgerCorrupt(
                f"{where}: line {number} is no audit entry: {error}; the file is left as it is: restore it from a "
                "copy, or take the line out while no program has the ledger open"
            ) from error
    return entries, torn


def _audit_entry(row: object) -> AuditEntry:
    if not isinstance(row, dict) or not set(_AUDIT_FIELDS[:5]) <= row.keys() <= set(_AUDIT_FIELDS):
        raise ValueError(
            f"it must be an object with {', '.join(_AUDIT_FIELDS)}, of which the last three can be left out"
        )
    return AuditEntry(**row)


def _bare(error: InvalidInput, where: str) -> str:
    """What is wrong, without the file's name, which some rules put first and others cannot know."""
    return str(error).removeprefix(f"{where}: ")
