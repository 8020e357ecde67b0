"""The model's verbs of jobs: ``job.py`` over a few dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Self

from ..errors import IdentityConflict, Unsupported
from ..ledgers.operator import ManualRule, Operator
from ..ledgers.verbs import LedgerVerbs, Rule
from ..model import job as rules
from ..model import queue_counts as overview
from ..model.clock import Clock, wall_ms
from ..model.inputs import Input, NewJob, Request
from ..model.job import (
    ClaimRequest,
    Job,
    State,
)
from ..model.query import ALL_JOBS, JobQuery
from ..model.queue_counts import QueueCounts
from ..model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
    check_receipt,
    conflict,
)
from ..model.records import (
    AuditEntry,
    Capabilities,
    Enqueued,
    Page,
    Swept,
)
from .model_store import KEEPS_ALL, ModelStore, place_of


class ModelJobs(LedgerVerbs):
    """The part of the ``Ledger`` protocol that every kind of ledger has."""

    def __init__(
        self,
        store: ModelStore | None = None,
        capabilities: Capabilities = KEEPS_ALL,
        *,
        clock: Clock = wall_ms,
    ) -> None:
        self.capabilities: Capabilities = capabilities
        self.location: str = "memory"
        self._store = ModelStore() if store is None else store
        self._clock = clock
        self._commits_seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to let go of."""

    def now_ms(self) -> int:
        return self._clock()

    def wait(self, timeout_s: float) -> bool:
        with self._store.changed:
            return self._store.changed.wait_for(lambda: self._store.commits > self._commits_seen, timeout_s)

    # -- enqueue --

    def _enqueue(self, request: Request, connection: Any, now_ms: int | None) -> list[Enqueued]:
        if connection is not None:
            raise Unsupported("the model joins no transaction; the SQL ledgers do")
        with self._store.writing():
            for new in request:
                self._check_identity(new)
            return [self._add(new, self._at(now_ms)) for new in request]

    def _check_identity(self, new: NewJob) -> None:
        bound, job = self._store.inputs.get(new.id), self._store.jobs.get(new.id)
        if bound is not None and bound.text != new.text:
            raise IdentityConflict(
                f"id {new.id!r} is bound to another text; enqueue this one under another id"
            )
        if job is not None and job.effect != new.effect:
            raise IdentityConflict(f"id {new.id!r} is bound to the effect {job.effect!r}, not {new.effect!r}")

    def _add(self, new: NewJob, now_ms: int) -> Enqueued:
        if new.id in self._store.jobs:
            return Enqueued(new.id, created=False)
        purged_version = self._store.purged.pop(new.id, None)
        self._store.inputs[new.id] = Input(new.id, new.text)
        self._put(
            new.queued(enqueued_at_ms=now_ms, version=0 if purged_version is None else purged_version + 1)
        )
        return Enqueued(new.id, created=True)

    # -- claim --

    def _settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, now_ms: int | None
    ) -> tuple[list[Settled], list[Job]]:
        with self._store.writing():
            self._commits_seen, at_ms = self._store.commits, self._at(now_ms)
            settled = [self._settle_one(settlement, at_ms) for settlement in settlements]
            if not all(item.completed for item in settled):
                return settled, []
            self._reap(request, at_ms)
            return settled, self._pick(request, at_ms)

    def _reap(self, request: ClaimRequest, now_ms: int) -> None:
        passed = [
            (rules.reap_due_ms(job, now_ms), moved)
            for job in self._store.jobs.values()
            if request.serves(job)
            and (moved := rules.reap(job, request, now_ms=now_ms, has_receipt=job.id in self._store.receipts))
        ]
        passed.sort(key=lambda pair: pair[0])
        for _, moved in passed[: rules.REAP_LIMIT]:
            self._put(moved)

    def _pick(self, request: ClaimRequest, now_ms: int) -> list[Job]:
        served = [
            job
            for job in self._store.jobs.values()
            if request.serves(job) and job.queue not in self._store.paused
        ]
        served.sort(key=rules.claim_order)
        claimed = (moved for job in served if (moved := rules.claim(job, request, now_ms=now_ms)))
        return [self._put(job) for job in islice(claimed, request.limit)]

    def _read_inputs(self, ids: list[str]) -> dict[str, Input]:
        with self._store.changed:
            return {id: self._store.inputs[id] for id in ids if id in self._store.inputs}

    def _receipts(self, ids: list[str]) -> dict[str, Receipt]:
        with self._store.changed:
            return {id: self._store.receipts[id] for id in ids if id in self._store.receipts}

    # -- while a claim holds the job --

    def publish(self, receipt: Receipt) -> Published:
        check_receipt(receipt)
        with self._store.writing():
            stored = self._store.receipts.get(receipt.id)
            if stored is None:
                self._store.receipts[receipt.id] = receipt
                self._store.committed()
                return Published(receipt, reused=False)
            if not stored.same_as(receipt):
                raise conflict(stored, receipt)
            return Published(stored, reused=True)

    def _settle(self, settlements: Sequence[Settlement], now_ms: int | None) -> list[Settled]:
        for settlement in settlements:
            check_receipt(settlement.receipt)
        with self._store.writing():
            return [self._settle_one(settlement, self._at(now_ms)) for settlement in settlements]

    def _settle_one(self, settlement: Settlement, now_ms: int) -> Settled:
        id, version, receipt = settlement.id, settlement.version, settlement.receipt
        stored = self._store.receipts.get(receipt.id)
        if stored is not None and not stored.same_as(receipt):
            return Settled(id, version, completed=False, reused=False, conflict=True)
        if stored is None:
            self.publish(receipt)
        completed = self.complete(id, version, now_ms=now_ms)
        return Settled(id, version, completed, reused=stored is not None, conflict=False)

    # -- what an operator does --

    def _purge(self, id: str, operator: Operator, now_ms: int | None) -> bool:
        with self._store.writing():
            job = self._store.jobs.get(id)
            if job is None or job.state != rules.DEAD:
                return False
            self._store.forget(job)
            self._store.audit.append(operator.entry("purge", id, self._at(now_ms), job))
            return True

    def _sweep_expired(self, queue: str | None, now_ms: int | None) -> Swept:
        with self._store.writing():
            at_ms = self._at(now_ms)
            jobs = [job for job in self._store.jobs.values() if queue in (None, job.queue)]
            purged = [job for job in jobs if rules.purgeable(job, at_ms)]
            buried = [moved for job in jobs if (moved := rules.expire(job, now_ms=at_ms))]
            for job in purged:
                self._store.forget(job)
            for job in buried:
                self._put(job)
            return Swept(expired=len(buried), purged=len(purged))

    # -- looking --

    def get_job(self, id: str) -> Job | None:
        with self._store.changed:
            return self._store.jobs.get(id)

    def jobs(self, query: JobQuery = ALL_JOBS) -> Page:
        with self._store.changed:
            place = place_of(query.after)
            found = [
                job
                for job in self._store.jobs.values()
                if self._store.places[job.id] > place and query.matches(job)
            ]
            shown = found[: query.limit]
            return Page(shown, str(self._store.places[shown[-1].id]) if len(found) > query.limit else None)

    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        with self._store.changed:
            jobs = [job for job in self._store.jobs.values() if queue in (None, job.queue)]
            return {state: sum(job.state == state for job in jobs) for state in rules.STATES}

    def _queue_counts(self, since_ms: int, now_ms: int | None) -> list[QueueCounts]:
        with self._store.changed:
            return overview.queue_counts(
                self._store.jobs.values(),
                now_ms=self._at(now_ms),
                since_ms=since_ms,
                keeps_completion=self.capabilities.keeps_claim_details,
            )

    def _latest_deaths(self, limit: int) -> list[Job]:
        with self._store.changed:
            in_order = sorted(self._store.jobs.values(), key=lambda job: self._store.places[job.id])
            return overview.latest_deaths(in_order, limit)

    def _next_due_ms(self, queues: Sequence[str] | None, effects: Sequence[str] | None) -> int | None:
        with self._store.changed:
            due = [
                job.expires_at_ms
                if job.queue in self._store.paused and job.state == rules.QUEUED
                else rules.next_due_ms(job)
                for job in self._store.jobs.values()
                if (queues is None or job.queue in queues) and (effects is None or job.effect in effects)
            ]
            return min((due_ms for due_ms in due if due_ms is not None), default=None)

    def _audit(self, id: str | None, limit: int) -> list[AuditEntry]:
        with self._store.changed:
            return [entry for entry in self._store.audit if id in (None, entry.id)][-limit:]

    # -- shared by the verbs --

    def _at(self, now_ms: int | None) -> int:
        return self.now_ms() if now_ms is None else now_ms

    def _put(self, job: Job) -> Job:
        return self._store.put(job, self.capabilities)

    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        with self._store.writing():
            job = self._store.jobs.get(id)
            moved = None if job is None else rule(job, self._at(now_ms))
            if moved is not None:
                self._put(moved)
            return moved is not None

    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        with self._store.writing():
            job, at_ms = self._store.jobs.get(id), self._at(now_ms)
            moved = None if job is None else rule(job, at_ms, self)
            if moved is None:
                return False
            self._put(moved)
            self._store.audit.append(operator.entry(action, id, at_ms, job, moved))
            return True

    # -- the records that an operator's decision rests on --

    def input(self, id: str) -> Input:
        return self._store.inputs[id]

    def receipt(self, id: str) -> Receipt | None:
        return self._store.receipts.get(id)
