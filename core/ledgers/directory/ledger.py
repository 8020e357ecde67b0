"""The verbs of the directory ledger: each is the model of ``job.py`` between reading and writing one file."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeAlias

from ... import job as moves
from ...clock import Clock, wall_ms
from ...crash import Step, pass_by
from ...documents import JSON, MAX_DOCUMENT_BYTES
from ...errors import (
    IdentityConflict,
    InvalidInput,
    LedgerBusy,
    LedgerCorrupt,
    LedgerFailed,
    LimitExceeded,
    ReceiptConflict,
    Unsupported,
)
from ...filters import ALL_JOBS, JobFilter
from ...inputs import Input, NewJob, check_name, check_request, text_sha256
from ...job import ClaimRequest, Decision, Job, State
from ...ledger import AuditEntry, Capabilities, Enqueued, Export, Fire, Page, Row, Schedule, Swept
from ...receipts import Published, Receipt, Settled, Settlement, check_outcome, conflict
from ..folder_watch import FolderWatch
from .rows import Purged, encode, kept
from .store import SEAL, Store, refuse_sealed
from .table import Table

if TYPE_CHECKING:
    from ...overview import QueueCounts

RESERVE_BYTES: Final = 256 * 1024
"""What an enqueue leaves free of the largest document, so that later moves always fit."""

MAX_SLEEP_S: Final = 1.0
"""How long ``wait`` trusts the folder's events alone."""

_Move: TypeAlias = Callable[[Job, int], Job | None]
"""One of the model's moves: the job and the instant."""


class DirectoryLedger:
    """Jobs in a folder of plain files, for thousands of jobs on one machine; see contract §5.

    ``step`` is told every step that changes the store (``crash.py``); ``clock`` is what ``now_ms=None`` means.
    """

    capabilities: Final = Capabilities(
        has_schedules=False,
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
        self._clock = clock
        self._watch = FolderWatch(self._store.path)
        self._seen = self._store.identity()

    @property
    def location(self) -> str:
        """The absolute path of the folder."""
        return self._store.path

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
        """Sleep until jobs.json is another file than when the last claim began, or the time-out."""
        deadline = time.monotonic() + timeout_s
        self._watch.open()
        while self._store.identity() == self._seen:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            self._watch.sleep(min(left_s, MAX_SLEEP_S))
        return True

    # -- enqueue --

    def enqueue(
        self, jobs: Iterable[NewJob], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        """Inputs first, then the jobs: a crash between leaves inputs that the same request adopts."""
        request = check_request(jobs)
        if connection is not None:
            raise Unsupported(
                f"{self.location}: a directory ledger cannot join a transaction; use an SQL ledger (sqlite:PATH)"
            )
        with self._open_table() as table:
            inputs: list[Input] = []
            answers = [self._admit(table, job, inputs) for job in request]
            if table.size > MAX_DOCUMENT_BYTES - RESERVE_BYTES and table.changed:
                raise LimitExceeded(
                    f"{self.location}: {len(request):,} more jobs would fill jobs.json beyond "
                    f"{MAX_DOCUMENT_BYTES - RESERVE_BYTES:,} bytes; nothing was stored. For more jobs use an SQL "
                    "ledger (--store jobs.db): `fencepost copy` moves this one there"
                )
            if inputs:
                self._store.add_inputs(inputs)
        return answers

    def _admit(self, table: Table, job: NewJob, inputs: list[Input]) -> Enqueued:
        known = table.jobs.get(job.id)
        stored = self._store.input(job.id)
        if stored is None:
            if known is not None or job.id in table.purged:
                self._missing_input(job.id)
            inputs.append(Input(job.id, job.text))
        elif stored.text != job.text:
            raise IdentityConflict(
                f"{self.location}: the id {job.id!r} is bound to another text; nothing was stored. Give the "
                "changed text an id of its own"
            )
        if known is not None:
            if known.effect != job.effect:
                raise IdentityConflict(
                    f"{self.location}: the job {job.id!r} has the effect {known.effect!r}, not {job.effect!r}; "
                    "nothing was stored"
                )
            return Enqueued(job.id, created=False)
        last = table.purged.get(job.id)
        table.add(job.queued(enqueued_at_ms=None, version=0 if last is None else last + 1))
        return Enqueued(job.id, created=True)

    # -- claim --

    def claim(
        self,
        *,
        claimant: str,
        lease_ms: int,
        max_attempts: int,
        limit: int = 1,
        queues: Sequence[str] | None = None,
        effects: Sequence[str] | None = None,
        exhausted_error: str = moves.EXHAUSTED,
        expired_error: str = moves.EXPIRED,
        lost_error: str = moves.ATTEMPT_LOST,
        now_ms: int | None = None,
    ) -> list[Job]:
        """Settle and pick under one lock and, where anything changed, with one write."""
        request = ClaimRequest(
            claimant=claimant,
            lease_ms=lease_ms,
            max_attempts=max_attempts,
            limit=limit,
            queues=None if queues is None else tuple(queues),
            effects=None if effects is None else tuple(effects),
            exhausted_error=exhausted_error,
            expired_error=expired_error,
            lost_error=lost_error,
        )
        return self.settle_and_claim([], request, now_ms=now_ms)[1]

    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        """Receipts first; then the completions and the claim in one write."""
        published = self._publish_all(settlements)
        with self._open_table() as table:
            now_ms = self._clock() if now_ms is None else now_ms
            self._seen = self._store.identity()
            settled = self._complete_all(table, settlements, published, now_ms)
            if not all(item.completed for item in settled):
                return settled, []
            table.settle(request, now_ms=now_ms)
            claimed = table.claim(request, now_ms=now_ms, room_bytes=MAX_DOCUMENT_BYTES)
        return settled, claimed

    def read_inputs(self, ids: Iterable[str]) -> dict[str, Input]:
        """Each id's file."""
        found = {}
        for id in ids:
            if (item := self._store.input(id)) is not None:
                found[id] = item
            elif self.get_job(id) is not None:
                self._missing_input(id)
        return found

    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        """Each id's file."""
        found = {id: self._store.receipt(id) for id in ids}
        return {id: receipt for id, receipt in found.items() if receipt is not None}

    # -- the holder's moves --

    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``moves.begin``."""
        return self._move(id, lambda job, now_ms: moves.begin(job, version, now_ms=now_ms), now_ms)

    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        """See ``moves.heartbeat``."""
        return self._move(
            id, lambda job, now_ms: moves.heartbeat(job, version, now_ms=now_ms, extend_ms=extend_ms), now_ms
        )

    def publish(self, receipt: Receipt) -> Published:
        """Link the receipt to its name, or compare it with what stands there."""
        self._refuse_if_sealed()
        return self._compare(receipt, linked=self._store.add_receipts([receipt])[0])

    def _compare(self, receipt: Receipt, *, linked: bool) -> Published:
        if linked:
            return Published(receipt, reused=False)
        stored = self._store.receipt(receipt.id)
        if stored is None:
            raise LedgerFailed(
                f"{self.location}: the receipt of {receipt.id!r} vanished while it was compared"
            )
        if not stored.same_as(receipt):
            raise conflict(stored, receipt)
        return Published(stored, reused=True)

    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``moves.complete``."""
        return self._move(id, lambda job, now_ms: moves.complete(job, version, now_ms=now_ms), now_ms)

    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """Receipts first, each durable on its own; then all completions in one write."""
        if not settlements:
            return []
        published = self._publish_all(settlements)
        with self._open_table() as table:
            return self._complete_all(
                table, settlements, published, self._clock() if now_ms is None else now_ms
            )

    def retry(
        self,
        id: str,
        version: int,
        *,
        run_at_ms: int | None,
        error: str | None,
        max_attempts: int,
        exhausted_error: str = moves.EXHAUSTED,
        now_ms: int | None = None,
    ) -> bool:
        """See ``moves.retry``."""
        return self._move(
            id,
            lambda job, now_ms: moves.retry(
                job,
                version,
                now_ms=now_ms,
                run_at_ms=run_at_ms,
                error=error,
                max_attempts=max_attempts,
                exhausted_error=exhausted_error,
            ),
            now_ms,
        )

    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``moves.fail``."""
        return self._move(
            id, lambda job, now_ms: moves.fail(job, version, now_ms=now_ms, error=error), now_ms
        )

    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``moves.release``."""
        return self._move(id, lambda job, now_ms: moves.release(job, version, now_ms=now_ms), now_ms)

    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``moves.hold``."""
        return self._move(
            id, lambda job, now_ms: moves.hold(job, version, now_ms=now_ms, error=error), now_ms
        )

    # -- the operator's moves --

    def cancel(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        error: str = moves.CANCELLED,
        now_ms: int | None = None,
    ) -> bool:
        """See ``moves.cancel``."""
        return self._manual(
            "cancel",
            id,
            lambda job, now_ms: moves.cancel(job, now_ms=now_ms, error=error),
            actor=actor,
            reason=reason,
            now_ms=now_ms,
        )

    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``moves.redrive``."""
        return self._manual(
            "redrive",
            id,
            lambda job, now_ms: moves.redrive(
                job, now_ms=now_ms, has_receipt=self._store.receipt(id) is not None
            ),
            actor=actor,
            reason=reason,
            now_ms=now_ms,
        )

    def resolve(
        self,
        id: str,
        *,
        decision: Decision,
        outcome: Mapping[str, JSON] | None = None,
        actor: str | None = None,
        reason: str | None = None,
        error: str = moves.FAILED_BY_OPERATOR,
        now_ms: int | None = None,
    ) -> bool:
        """See ``moves.resolve``; ``applied`` publishes the outcome first, or finds a receipt."""

        def move(job: Job, now_ms: int) -> Job | None:
            resolved = moves.resolve(job, now_ms=now_ms, decision=decision, error=error)
            if resolved is not None and decision == "applied":
                self._adopt_outcome(job, outcome)
            return resolved

        return self._manual("resolve", id, move, actor=actor, reason=reason, now_ms=now_ms)

    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Keep nothing of the dead job but its version."""
        with self._open_table() as table:
            job = table.jobs.get(id)
            if job is None or job.state != moves.DEAD:
                return False
            now_ms = self._clock() if now_ms is None else now_ms
            self._store.record(AuditEntry(now_ms, "purge", id, actor, reason, job.state, None, job.version))
            table.purge(id)
        return True

    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """Retention first, then expiry; one write."""
        with self._open_table() as table:
            now_ms = self._clock() if now_ms is None else now_ms
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

    def jobs(
        self,
        *,
        states: Sequence[State] | None = None,
        queue: str | None = None,
        effect: str | None = None,
        where: JobFilter = ALL_JOBS,
        after: str | None = None,
        limit: int = 1000,
    ) -> Page:
        """The cursor is the id of the last job shown."""
        with self._store.table() as table:
            found = [
                job
                for job in table.in_order()
                if (states is None or job.state in states)
                and (queue is None or job.queue == queue)
                and (effect is None or job.effect == effect)
                and where.matches(job)
            ]
            if after is not None:
                place = table.order_of(check_name(after, "cursor"))
                found = [job for job in found if table.order_of(job.id) > place]
        page = found[:limit]
        return Page(page, page[-1].id if len(found) > limit else None)

    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """A count for each state, 0 included."""
        counts: dict[State, int] = dict.fromkeys(moves.STATES, 0)
        with self._store.table() as table:
            for job in table.jobs.values():
                if queue is None or job.queue == queue:
                    counts[job.state] += 1
        return counts

    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        """See ``overview.queue_counts``; when a job was completed is not kept."""
        from ... import overview

        with self._store.table() as table:
            return overview.queue_counts(
                table.jobs.values(),
                now_ms=self._clock() if now_ms is None else now_ms,
                since_ms=since_ms,
                keeps_completion=False,
            )

    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        """See ``overview.latest_deaths``."""
        from ... import overview

        with self._store.table() as table:
            return overview.latest_deaths(table.in_order(), limit)

    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        """The soonest of what ``moves.next_due_ms`` says of the jobs served."""
        with self._store.table() as table:
            due = [
                due_ms
                for job in table.jobs.values()
                if (queues is None or job.queue in queues)
                and (effects is None or job.effect in effects)
                and (due_ms := moves.next_due_ms(job)) is not None
            ]
        return min(due, default=None)

    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """The last entries of audit.jsonl."""
        entries = [entry for entry in self._store.audit() if id is None or entry.id == id]
        return entries[-limit:]

    # -- moving to another kind of ledger --

    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        """Recorded in audit.jsonl, which every program that keeps this layout preserves."""
        with self._store.table() as table:
            now_ms = self._clock() if now_ms is None else now_ms
            sealed_for = self._store.sealed_for()
            if sealed_for == destination:
                return
            if sealed_for is not None:
                refuse_sealed(self.location, sealed_for)
            live = [job.id for job in table.jobs.values() if job.state == moves.RUNNING]
            live = [id for id in live if not moves.lapsed(table.jobs[id], now_ms)]
            if live:
                raise LedgerBusy(
                    f"{self.location}: {len(live)} jobs are running under live leases ({live[0]!r} is one); stop "
                    "the workers, or wait for the leases to end"
                )
            self._store.record(AuditEntry(now_ms, SEAL, destination, actor, None))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        return self._store.sealed_for()

    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Jobs in order of enqueue, then ids without a job; the cursor is a count."""
        if after is not None and not re.fullmatch("[0-9]{1,15}", after, re.ASCII):
            raise InvalidInput(
                f"{after!r:.40} is no cursor of this ledger: give what the page before returned"
            )
        start = int(after or "0")
        with self._store.table() as table:
            ids = [*sorted(table.jobs, key=table.order_of), *sorted(table.purged, key=table.order_of)]
            known = set(ids)
            ids += [id for id in self._store.input_ids() if id not in known]
            rows = [
                Row(
                    id,
                    table.jobs.get(id),
                    table.purged.get(id),
                    self._store.input(id),
                    self._store.receipt(id),
                )
                for id in ids[start : start + limit]
            ]
        return Export(rows, str(start + limit) if start + limit < len(ids) else None)

    def check_room(self, rows: Iterable[Row]) -> None:
        """By the size of jobs.json with all of them in it."""
        size = 0
        for row in rows:
            if row.job is not None:
                size += len(encode(kept(row.job))) + 2
            elif row.purged_version is not None:
                size += len(encode(Purged(row.id, row.purged_version))) + 2
            if size > MAX_DOCUMENT_BYTES - RESERVE_BYTES:
                raise LimitExceeded(
                    f"{self.location}: a directory ledger carries {MAX_DOCUMENT_BYTES - RESERVE_BYTES:,} bytes of "
                    "jobs, and these are more; nothing was stored. Copy to an SQL ledger"
                )

    def import_rows(self, rows: Sequence[Row]) -> int:
        """Inputs and receipts first, then the jobs in one write."""
        with self._open_table() as table:
            new = [row for row in rows if self._is_new(table, row)]
            self._store.add_inputs([row.input for row in new if row.input is not None])
            for row in rows:
                if row.receipt is not None:
                    self.publish(row.receipt)
            for row in new:
                if row.job is not None:
                    table.add(row.job)
                elif row.purged_version is not None:
                    table.add_purged(Purged(row.id, row.purged_version))
            if table.size > MAX_DOCUMENT_BYTES - RESERVE_BYTES and table.changed:
                raise LimitExceeded(
                    f"{self.location}: a directory ledger cannot hold so many jobs; copy to an SQL ledger"
                )
        return len(new)

    def _is_new(self, table: Table, row: Row) -> bool:
        stored = self._store.input(row.id)
        if stored is not None and row.input is not None and stored.text != row.input.text:
            raise IdentityConflict(f"{self.location}: the id {row.id!r} is bound to another text")
        receipt = self._store.receipt(row.id)
        if receipt is not None and (row.receipt is None or not receipt.same_as(row.receipt)):
            raise IdentityConflict(
                f"{self.location}: the receipt of {row.id!r} is there already, and differs"
            )
        if row.job is None and row.purged_version is None:
            return stored is None
        known = table.jobs.get(row.id)
        if known is None and row.id not in table.purged:
            return True
        if known != (None if row.job is None else kept(row.job)) or (
            table.purged.get(row.id) != row.purged_version
        ):
            raise IdentityConflict(f"{self.location}: the job {row.id!r} is there already, and differs")
        return False

    # -- pauses and schedules: not of this kind --

    def pause(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Not of this kind."""
        self._needs_sql("a pause")

    def resume(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Not of this kind."""
        self._needs_sql("a pause")

    def paused(self) -> list[str]:
        """No queue of this kind is ever paused."""
        return []

    def register_schedule(self, schedule: Schedule, *, now_ms: int | None = None) -> None:
        """Not of this kind."""
        self._needs_sql("a schedule")

    def unregister_schedule(self, name: str) -> bool:
        """Not of this kind."""
        self._needs_sql("a schedule")

    def schedules(self) -> list[Schedule]:
        """There are none of this kind."""
        return []

    def tick(self, *, now_ms: int | None = None) -> list[Fire]:
        """There is nothing to fire."""
        return []

    def soonest(self) -> int | None:
        """There is nothing to fire."""
        return None

    # -- shared by the verbs --

    @contextlib.contextmanager
    def _open_table(self) -> Iterator[Table]:
        """The table for a change; a sealed ledger refuses every one."""
        with self._store.table() as table:
            self._refuse_if_sealed()
            yield table

    def _refuse_if_sealed(self) -> None:
        if (destination := self._store.sealed_for()) is not None:
            refuse_sealed(self.location, destination)

    def _move(self, id: str, move: _Move, now_ms: int | None) -> bool:
        with self._open_table() as table:
            job = table.jobs.get(id)
            moved = job and move(job, self._clock() if now_ms is None else now_ms)
            if not moved:
                return False
            if moved != job:
                table.put(moved)
        return True

    def _manual(
        self,
        action: str,
        id: str,
        move: _Move,
        *,
        actor: str | None,
        reason: str | None,
        now_ms: int | None,
    ) -> bool:
        with self._open_table() as table:
            job = table.jobs.get(id)
            now_ms = self._clock() if now_ms is None else now_ms
            moved = job and move(job, now_ms)
            if not job or not moved:
                return False
            self._store.record(
                AuditEntry(now_ms, action, id, actor, reason, job.state, moved.state, moved.version)
            )
            table.put(moved)
        return True

    def _publish_all(self, settlements: Sequence[Settlement]) -> list[Published | None]:
        """Publish every receipt; None for each that contradicts the stored one."""
        self._refuse_if_sealed()
        receipts = [item.receipt for item in settlements]
        published: list[Published | None] = []
        for receipt, linked in zip(receipts, self._store.add_receipts(receipts), strict=True):
            try:
                published.append(self._compare(receipt, linked=linked))
            except ReceiptConflict:
                published.append(None)
        return published

    def _complete_all(
        self,
        table: Table,
        settlements: Sequence[Settlement],
        published: Sequence[Published | None],
        now_ms: int,
    ) -> list[Settled]:
        answers = []
        for item, stored in zip(settlements, published, strict=True):
            job = table.jobs.get(item.id)
            done = job and stored and moves.complete(job, item.version, now_ms=now_ms)
            if done:
                table.put(done)
            answers.append(
                Settled(
                    item.id,
                    item.version,
                    completed=bool(done),
                    reused=stored is not None and stored.reused,
                    conflict=stored is None,
                )
            )
        return answers

    def _adopt_outcome(self, job: Job, outcome: Mapping[str, JSON] | None) -> None:
        stored = self._store.receipt(job.id)
        if outcome is None:
            if stored is None:
                raise InvalidInput(f"the job {job.id!r} has no receipt: say what was done, as an outcome")
            return
        text = self._text_of(job.id)
        receipt = Receipt(
            job.id,
            text_sha256(text),
            check_outcome(dict(outcome)),
            job.effect,
            None if stored is None else stored.effect_version,
        )
        self.publish(receipt)

    def _text_of(self, id: str) -> str:
        stored = self._store.input(check_name(id, "id"))
        if stored is None:
            self._missing_input(id)
        return stored.text

    def _missing_input(self, id: str) -> NoReturn:
        raise LedgerCorrupt(
            f"{self.location}: the job {id!r} has no input (inputs/{id}.json is missing); restore the file from a copy"
        )

    def _needs_sql(self, what: str) -> NoReturn:
        raise Unsupported(f"{self.location}: {what} needs an SQL ledger (--store jobs.db, or postgresql://…)")
