"""The verbs of the directory ledger: each is the model of ``job.py`` between reading and writing one file."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from ... import job as moves
from ...arguments import checked
from ...clock import Clock, wall_ms
from ...crash import Step, pass_by
from ...documents import JSON, MAX_DOCUMENT_BYTES
from ...errors import IdentityConflict, LimitExceeded, Unsupported
from ...filters import ALL_JOBS, JobFilter
from ...inputs import Input, NewJob, check_request
from ...job import ClaimRequest, Decision, Job, State
from ...ledger import AuditEntry, Capabilities, Enqueued, Export, Page, Row, Swept
from ...receipts import Published, Receipt, Settled, Settlement
from ..folder_watch import FolderWatch
from . import looking, receipting, transfer
from .store import Store, refuse_sealed
from .table import Table
from .transfer import MOST_BYTES
from .without_schedules import WithoutSchedules

if TYPE_CHECKING:
    from ...overview import QueueCounts

MAX_SLEEP_S: Final = 1.0
"""How long ``wait`` trusts the folder's events alone."""

_Move: TypeAlias = Callable[[Job, int], Job | None]
"""One of the model's moves: the job and the instant."""


class DirectoryLedger(WithoutSchedules):
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
            if table.size > MOST_BYTES and table.changed:
                raise LimitExceeded(
                    f"{self.location}: {len(request):,} more jobs would fill jobs.json beyond "
                    f"{MOST_BYTES:,} bytes; nothing was stored. For more jobs use an SQL "
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
                self._store.missing_input(job.id)
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

    @checked
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

    @checked
    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        """Receipts first; then the completions and the claim in one write."""
        self._refuse_if_sealed()
        published = receipting.publish_all(self._store, settlements)
        with self._open_table() as table:
            now_ms = self._at(now_ms)
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
                self._store.missing_input(id)
        return found

    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        """Each id's file."""
        found = {id: self._store.receipt(id) for id in ids}
        return {id: receipt for id, receipt in found.items() if receipt is not None}

    # -- the holder's moves --

    @checked
    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``moves.begin``."""
        return self._move(id, lambda job, now_ms: moves.begin(job, version, now_ms=now_ms), now_ms)

    @checked
    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        """See ``moves.heartbeat``."""
        return self._move(
            id, lambda job, now_ms: moves.heartbeat(job, version, now_ms=now_ms, extend_ms=extend_ms), now_ms
        )

    def publish(self, receipt: Receipt) -> Published:
        """Link the receipt to its name, or compare it with what stands there."""
        self._refuse_if_sealed()
        return receipting.publish(self._store, receipt)

    @checked
    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``moves.complete``."""
        return self._move(id, lambda job, now_ms: moves.complete(job, version, now_ms=now_ms), now_ms)

    @checked
    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """Receipts first, each durable on its own; then all completions in one write."""
        if not settlements:
            return []
        self._refuse_if_sealed()
        published = receipting.publish_all(self._store, settlements)
        with self._open_table() as table:
            return self._complete_all(table, settlements, published, self._at(now_ms))

    @checked
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

    @checked
    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``moves.fail``."""
        return self._move(
            id, lambda job, now_ms: moves.fail(job, version, now_ms=now_ms, error=error), now_ms
        )

    @checked
    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``moves.release``."""
        return self._move(id, lambda job, now_ms: moves.release(job, version, now_ms=now_ms), now_ms)

    @checked
    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``moves.hold``."""
        return self._move(
            id, lambda job, now_ms: moves.hold(job, version, now_ms=now_ms, error=error), now_ms
        )

    # -- the operator's moves --

    @checked
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

    @checked
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

    @checked
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
                receipting.adopt(self._store, job, outcome)
            return resolved

        return self._manual("resolve", id, move, actor=actor, reason=reason, now_ms=now_ms)

    @checked
    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Keep nothing of the dead job but its version."""
        with self._open_table() as table:
            job = table.jobs.get(id)
            if job is None or job.state != moves.DEAD:
                return False
            now_ms = self._at(now_ms)
            self._store.record(AuditEntry(now_ms, "purge", id, actor, reason, job.state, None, job.version))
            table.purge(id)
        return True

    @checked
    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """Retention first, then expiry; one write."""
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

    @checked
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
            return looking.page(
                table, states=states, queue=queue, effect=effect, where=where, after=after, limit=limit
            )

    @checked
    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """A count for each state, 0 included."""
        with self._store.table() as table:
            return looking.counts(table, queue)

    @checked
    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        """See ``overview.queue_counts``; when a job was completed is not kept."""
        from ... import overview

        with self._store.table() as table:
            return overview.queue_counts(
                table.jobs.values(), now_ms=self._at(now_ms), since_ms=since_ms, keeps_completion=False
            )

    @checked
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
            return looking.next_due_ms(table, queues, effects)

    @checked
    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """The last entries of audit.jsonl."""
        entries = [entry for entry in self._store.audit() if id is None or entry.id == id]
        return entries[-limit:]

    # -- moving to another kind of ledger --

    @checked
    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        """Recorded in audit.jsonl, which every program that keeps this layout preserves."""
        with self._store.table() as table:
            transfer.seal(self._store, table, destination, actor=actor, now_ms=self._at(now_ms))

    def sealed_for(self) -> str | None:
        """The destination it was sealed for."""
        return self._store.sealed_for()

    @checked
    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Jobs in order of enqueue, then ids without a job; the cursor is a count."""
        with self._store.table() as table:
            return transfer.export_rows(self._store, table, after=after, limit=limit)

    def check_room(self, rows: Iterable[Row]) -> None:
        """By the size of jobs.json with all of them in it."""
        transfer.check_room(self.location, rows)

    def import_rows(self, rows: Sequence[Row]) -> int:
        """Inputs and receipts first, then the jobs in one write."""
        with self._open_table() as table:
            return transfer.import_rows(self._store, table, rows)

    # -- shared by the verbs --

    @contextlib.contextmanager
    def _open_table(self) -> Iterator[Table]:
        """The table for a change; a sealed ledger refuses every one."""
        with self._store.table() as table:
            self._refuse_if_sealed()
            yield table

    def _at(self, now_ms: int | None) -> int:
        return self._clock() if now_ms is None else now_ms

    def _refuse_if_sealed(self) -> None:
        if (destination := self._store.sealed_for()) is not None:
            refuse_sealed(self.location, destination)

    def _move(self, id: str, move: _Move, now_ms: int | None) -> bool:
        with self._open_table() as table:
            job = table.jobs.get(id)
            moved = job and move(job, self._at(now_ms))
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
            now_ms = self._at(now_ms)
            moved = job and move(job, now_ms)
            if not job or not moved:
                return False
            self._store.record(
                AuditEntry(now_ms, action, id, actor, reason, job.state, moved.state, moved.version)
            )
            table.put(moved)
        return True

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
