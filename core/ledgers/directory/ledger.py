"""The verbs of the directory ledger: each is the model of ``job.py`` between reading and writing one file."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ...errors import Unsupported
from ...model import job as moves
from ...model.clock import Clock, wall_ms
from ...model.documents import MAX_DOCUMENT_BYTES
from ...model.inputs import (
    Input,
    Request,
    is_name,
)
from ...model.job import ClaimRequest, Job, State
from ...model.query import ALL_JOBS, JobQuery
from ...model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
)
from ...model.records import (
    AuditEntry,
    Capabilities,
    Enqueued,
    Export,
    Page,
    Row,
    Schedule,
    Swept,
)
from ..crash import Step, pass_by
from ..folder_watch import FolderWatch
from ..operator import ManualRule, Operator
from ..verbs import Rule
from . import reads as looking
from . import receipts as receipting
from . import transfer
from .enqueue import enqueue
from .plan_verbs import PlanVerbs
from .plans import Plans
from .store import Store
from .table import Table

if TYPE_CHECKING:
    from ...model.queue_counts import QueueCounts

MAX_SLEEP_S: Final = 1.0
"""How long ``wait`` trusts the folder's events alone."""


class DirectoryLedger(PlanVerbs):
    """Jobs in a folder of plain files, for thousands of jobs on one machine; see contract §5.

    ``step`` is told every step that changes the store (``crash.py``); ``clock`` is what ``now_ms=None`` means.
    """

    capabilities: Final = Capabilities(
        has_schedules=True,
        can_join_transaction=False,
        keeps_enqueue_time=False,
        keeps_claim_details=False,
        has_line_enqueue=False,
    )

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock = wall_ms,
        lock_timeout_s: float = 30.0,
        step: Step = pass_by,
    ) -> None:
        self._store = Store(os.fspath(path), lock_timeout_s=lock_timeout_s, step=step)
        self._plans = Plans(self._store)
        self._clock = clock
        self._watch = FolderWatch(self._store.path)
        self._seen = self._store.news()

    @property
    def location(self) -> str:
        """The absolute path of the folder, as ``--store`` takes it."""
        return self._store.location

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every descriptor."""
        self._watch.close()
        self._store.close()

    def now_ms(self) -> int:
        """The clock that the ledger was opened with; the wall clock unless said."""
        return self._clock()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until jobs.json or paused.json is another file than when the last claim began, or the time-out."""
        deadline = time.monotonic() + timeout_s
        self._watch.open()
        while self._store.news() == self._seen:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            self._watch.sleep(min(left_s, MAX_SLEEP_S))
        return True

    # -- enqueue --

    def _enqueue(self, request: Request, connection: Any, now_ms: int | None) -> list[Enqueued]:
        if connection is not None:
            raise Unsupported(
                f"{self.location}: a directory ledger cannot join a transaction; use an SQL ledger (sqlite:PATH)"
            )
        with self._open_table() as table:
            return enqueue(self._store, table, request)

    # -- claim --

    def _settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, now_ms: int | None
    ) -> tuple[list[Settled], list[Job]]:
        # Receipts first; then the completions and the claim in one write.
        self._store.closing().refuse(self.location)
        published = receipting.publish_all(self._store, settlements)
        with self._open_table() as table:
            now_ms = self._at(now_ms)
            self._seen = self._store.news()
            settled = receipting.complete_all(table, settlements, published, now_ms)
            if not all(item.completed for item in settled):
                return settled, []
            table.reap(request, now_ms=now_ms, has_receipt=lambda id: self._store.receipt(id) is not None)
            claimed = table.claim(
                request, now_ms=now_ms, room_bytes=MAX_DOCUMENT_BYTES, paused=self._plans.paused()
            )
        return settled, claimed

    def _read_inputs(self, ids: list[str]) -> dict[str, Input]:
        found = {}
        for id in filter(is_name, ids):
            if (item := self._store.input(id)) is not None:
                found[id] = item
            elif self.get_job(id) is not None:
                self._store.missing_input(id)
        return found

    def _receipts(self, ids: list[str]) -> dict[str, Receipt]:
        found = {id: self._store.receipt(id) for id in ids if is_name(id)}
        return {id: receipt for id, receipt in found.items() if receipt is not None}

    # -- the owner's moves --

    def publish(self, receipt: Receipt) -> Published:
        """Link the receipt to its name, or compare it with the stored one."""
        self._store.closing().refuse(self.location)
        return receipting.publish(self._store, receipt)

    def _settle(self, settlements: Sequence[Settlement], now_ms: int | None) -> list[Settled]:
        # Receipts first, each durable on its own; then all completions in one write.
        self._store.closing().refuse(self.location)
        published = receipting.publish_all(self._store, settlements)
        with self._open_table() as table:
            return receipting.complete_all(table, settlements, published, self._at(now_ms))

    # -- the operator's moves --

    def _purge(self, id: str, operator: Operator, now_ms: int | None) -> bool:
        with self._open_table() as table:
            job = table.jobs.get(id)
            if job is None or job.state != moves.DEAD:
                return False
            self._store.record(operator.entry("purge", id, self._at(now_ms), job))
            table.purge(id)
        return True

    def _sweep_expired(self, queue: str | None, now_ms: int | None) -> Swept:
        # Retention first, then expiry; one write.
        with self._open_table() as table:
            now_ms = self._at(now_ms)
            swept = [job for job in table.jobs.values() if queue is None or job.queue == queue]
            old = [job.id for job in swept if moves.purgeable(job, now_ms)]
            for id in old:
                table.purge(id)
            late = [dead for job in swept if (dead := moves.expire(job, now_ms=now_ms)) is not None]
            for dead in late:
                table.put(dead)
        return Swept(expired=len(late), purged=len(old))

    # -- looking --

    def get_job(self, id: str) -> Job | None:
        """The job under that id."""
        with self._store.table() as table:
            return table.jobs.get(id)

    def jobs(self, query: JobQuery = ALL_JOBS) -> Page:
        """The cursor is the id of the last job shown."""
        with self._store.table() as table:
            return looking.page(table, query)

    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """A count for each state, 0 included."""
        with self._store.table() as table:
            return looking.counts(table, queue)

    def _queue_counts(self, since_ms: int, now_ms: int | None) -> list[QueueCounts]:
        from ...model import queue_counts as overview

        with self._store.table() as table:
            return overview.queue_counts(
                table.jobs.values(), now_ms=self._at(now_ms), since_ms=since_ms, keeps_completion=False
            )

    def _latest_deaths(self, limit: int) -> list[Job]:
        from ...model import queue_counts as overview

        with self._store.table() as table:
            return overview.latest_deaths(table.in_order(), limit)

    def _next_due_ms(self, queues: Sequence[str] | None, effects: Sequence[str] | None) -> int | None:
        with self._store.table() as table:
            return looking.next_due_ms(table, queues, effects, self._plans.paused())

    def _audit(self, id: str | None, limit: int) -> list[AuditEntry]:
        entries = [entry for entry in self._store.audit() if id is None or entry.id == id]
        return entries[-limit:]

    # -- moving to another kind of ledger --

    def _seal(self, destination: str, operator: Operator, now_ms: int | None) -> None:
        # Recorded in audit.jsonl, which every program that keeps this layout preserves.
        with self._store.table() as table:
            transfer.seal(self._store, table, destination, actor=operator.actor, now_ms=self._at(now_ms))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        return self._store.closing().sealed_for

    def _begin_copy(self, source: str, operator: Operator, now_ms: int | None) -> bool:
        with self._store.table() as table:
            return transfer.begin_copy(
                self._store,
                table,
                source,
                planned=self._plans.schedules(),
                actor=operator.actor,
                now_ms=self._at(now_ms),
            )

    def _end_copy(
        self,
        source: str,
        paused: Sequence[str],
        planned: Sequence[Schedule],
        operator: Operator,
        now_ms: int | None,
    ) -> bool:
        # Pauses and schedules first: the record of the end lets work begin.
        with self._store.table():
            at_ms = self._at(now_ms)
            if not transfer.is_coming(self._store, source):
                return False
            for queue in sorted(set(paused) - self._plans.paused()):
                self._store.record(operator.entry("pause", queue, at_ms))
            self._end_with(paused, planned)
            transfer.end_copy(self._store, source, actor=operator.actor, now_ms=at_ms)
        return True

    def copying_from(self) -> str | None:
        """The source of the copy that has not ended."""
        return self._store.closing().copying_from

    def _export_rows(self, after: str | None, limit: int) -> Export:
        with self._store.table() as table:
            return transfer.export_rows(self._store, table, after=after, limit=limit)

    def check_room(self, rows: Iterable[Row]) -> None:
        """By the size of jobs.json with all of them in it."""
        transfer.check_room(self.location, rows)

    def import_rows(self, rows: Sequence[Row], *, copy_of: str | None = None) -> int:
        """Inputs and receipts first, then the jobs in one write."""
        with self._open_table(even_copying=True) as table:
            if copy_of is not None:
                self._store.closing().require_copy(self.location, copy_of)
            return transfer.import_rows(self._store, table, rows)

    # -- shared by the verbs --

    @contextlib.contextmanager
    def _open_table(self, *, even_copying: bool = False) -> Iterator[Table]:
        """The table for a change; a closed ledger refuses every one."""
        with self._store.table() as table:
            self._store.closing().refuse(self.location, even_copying=even_copying)
            yield table

    def _at(self, now_ms: int | None) -> int:
        return self._clock() if now_ms is None else now_ms

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._open_table() as table:
            job = table.jobs.get(id)
            moved = job and rule(job, self._at(now_ms))
            if not moved:
                return False
            if moved != job:
                table.put(moved)
        return True

    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        with self._open_table() as table:
            job = table.jobs.get(id)
            at_ms = self._at(now_ms)
            moved = job and rule(job, at_ms, receipting.Records(self._store))
            if not job or not moved:
                return False
            self._store.record(operator.entry(action, id, at_ms, job, moved))
            table.put(moved)
        return True
