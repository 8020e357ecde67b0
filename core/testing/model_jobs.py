"""The model's verbs of jobs: ``job.py`` over a few dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import TracebackType
from typing import Any, Self

from ..errors import IdentityConflict, InvalidInput, Unsupported
from ..ledgers.arguments import checked
from ..model import job as rules
from ..model import queue_counts as overview
from ..model.clock import Clock, wall_ms
from ..model.documents import JSON
from ..model.inputs import Input, NewJob, check_request
from ..model.job import (
    CANCELLED,
    EXHAUSTED,
    FAILED_BY_OPERATOR,
    ClaimRequest,
    Decision,
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
    check_outcome,
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


class ModelJobs:
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

    def enqueue(
        self, jobs: Iterable[NewJob], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        request = check_request(jobs)
        if connection is not None:
            raise Unsupported("the model joins no transaction; the SQL ledgers do")
        with self._store.writing():
            for new in request:
                self._check_identity(new)
            return [self._enqueue(new, self._at(now_ms)) for new in request]

    def _check_identity(self, new: NewJob) -> None:
        bound, job = self._store.inputs.get(new.id), self._store.jobs.get(new.id)
        if bound is not None and bound.text != new.text:
            raise IdentityConflict(
                f"id {new.id!r} is bound to another text; enqueue this one under another id"
            )
        if job is not None and job.effect != new.effect:
            raise IdentityConflict(f"id {new.id!r} is bound to the effect {job.effect!r}, not {new.effect!r}")

    def _enqueue(self, new: NewJob, now_ms: int) -> Enqueued:
        if new.id in self._store.jobs:
            return Enqueued(new.id, created=False)
        purged_version = self._store.purged.pop(new.id, None)
        self._store.inputs[new.id] = Input(new.id, new.text)
        self._put(
            new.queued(enqueued_at_ms=now_ms, version=0 if purged_version is None else purged_version + 1)
        )
        return Enqueued(new.id, created=True)

    # -- claim --

    def claim(self, request: ClaimRequest, *, now_ms: int | None = None) -> list[Job]:
        return self.settle_and_claim([], request, now_ms=now_ms)[1]

    @checked
    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        with self._store.writing():
            self._commits_seen, at_ms = self._store.commits, self._at(now_ms)
            settled = [self._settle(settlement, at_ms) for settlement in settlements]
            if not all(item.completed for item in settled):
                return settled, []
            self._settle_passed(request, at_ms)
            return settled, self._pick(request, at_ms)

    def _settle_passed(self, request: ClaimRequest, now_ms: int) -> None:
        passed = [
            (rules.reap_due_ms(job, now_ms), moved)
            for job in self._store.jobs.values()
            if request.serves(job) and (moved := rules.reap(job, request, now_ms=now_ms))
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

    @checked
    def read_inputs(self, ids: Iterable[str]) -> dict[str, Input]:
        with self._store.changed:
            return {id: self._store.inputs[id] for id in ids if id in self._store.inputs}

    @checked
    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        with self._store.changed:
            return {id: self._store.receipts[id] for id in ids if id in self._store.receipts}

    # -- while a claim holds the job --

    @checked
    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        return self._move(id, lambda job: rules.begin(job, version, now_ms=self._at(now_ms)))

    @checked
    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        return self._move(
            id, lambda job: rules.heartbeat(job, version, now_ms=self._at(now_ms), extend_ms=extend_ms)
        )

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

    @checked
    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        return self._move(id, lambda job: rules.complete(job, version, now_ms=self._at(now_ms)))

    @checked
    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        for settlement in settlements:
            check_receipt(settlement.receipt)
        with self._store.writing():
            return [self._settle(settlement, self._at(now_ms)) for settlement in settlements]

    def _settle(self, settlement: Settlement, now_ms: int) -> Settled:
        id, version, receipt = settlement.id, settlement.version, settlement.receipt
        stored = self._store.receipts.get(receipt.id)
        if stored is not None and not stored.same_as(receipt):
            return Settled(id, version, completed=False, reused=False, conflict=True)
        if stored is None:
            self.publish(receipt)
        completed = self.complete(id, version, now_ms=now_ms)
        return Settled(id, version, completed, reused=stored is not None, conflict=False)

    @checked
    def retry(
        self,
        id: str,
        version: int,
        *,
        run_at_ms: int | None,
        error: str | None,
        max_attempts: int,
        exhausted_error: str = EXHAUSTED,
        now_ms: int | None = None,
    ) -> bool:
        def move(job: Job) -> Job | None:
            return rules.retry(
                job,
                version,
                now_ms=self._at(now_ms),
                run_at_ms=run_at_ms,
                error=error,
                max_attempts=max_attempts,
                exhausted_error=exhausted_error,
            )

        return self._move(id, move)

    @checked
    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        return self._move(id, lambda job: rules.fail(job, version, now_ms=self._at(now_ms), error=error))

    @checked
    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        return self._move(id, lambda job: rules.release(job, version, now_ms=self._at(now_ms)))

    @checked
    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        return self._move(id, lambda job: rules.hold(job, version, now_ms=self._at(now_ms), error=error))

    # -- what an operator does --

    @checked
    def cancel(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        error: str = CANCELLED,
        now_ms: int | None = None,
    ) -> bool:
        at_ms = self._at(now_ms)
        return self._operate(
            AuditEntry(at_ms, "cancel", id, actor, reason),
            lambda job: rules.cancel(job, now_ms=at_ms, error=error),
        )

    @checked
    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        at_ms = self._at(now_ms)
        return self._operate(
            AuditEntry(at_ms, "redrive", id, actor, reason),
            lambda job: rules.redrive(job, now_ms=at_ms, has_receipt=id in self._store.receipts),
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
        error: str = FAILED_BY_OPERATOR,
        now_ms: int | None = None,
    ) -> bool:
        at_ms = self._at(now_ms)

        def move(job: Job) -> Job | None:
            moved = rules.resolve(job, now_ms=at_ms, decision=decision, error=error)
            if moved is not None and decision == "applied":
                self._adopt(job, outcome)
            return moved

        return self._operate(AuditEntry(at_ms, "resolve", id, actor, reason), move)

    def _adopt(self, job: Job, outcome: Mapping[str, JSON] | None) -> None:
        """Publish what the operator says was done, or let the receipt that is there stand."""
        stored = self._store.receipts.get(job.id)
        if outcome is None:
            if stored is None:
                raise InvalidInput(
                    f"job {job.id!r} has no receipt: to resolve it as applied, give its outcome"
                )
            return
        version = None if stored is None else stored.effect_version
        digest = self._store.inputs[job.id].sha256
        given = Receipt(job.id, digest, check_outcome(dict(outcome)), job.effect, version)
        if not self._store.receipts.setdefault(job.id, given).same_as(given):
            raise conflict(self._store.receipts[job.id], given)

    @checked
    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        with self._store.writing():
            job = self._store.jobs.get(id)
            if job is None or job.state != rules.DEAD:
                return False
            self._store.forget(job)
            self._store.audit.append(
                AuditEntry(self._at(now_ms), "purge", id, actor, reason, job.state, None, job.version)
            )
            return True

    @checked
    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
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

    @checked
    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        with self._store.changed:
            jobs = [job for job in self._store.jobs.values() if queue in (None, job.queue)]
            return {state: sum(job.state == state for job in jobs) for state in rules.STATES}

    @checked
    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        with self._store.changed:
            return overview.queue_counts(
                self._store.jobs.values(),
                now_ms=self._at(now_ms),
                since_ms=since_ms,
                keeps_completion=self.capabilities.keeps_claim_details,
            )

    @checked
    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        with self._store.changed:
            in_order = sorted(self._store.jobs.values(), key=lambda job: self._store.places[job.id])
            return overview.latest_deaths(in_order, limit)

    @checked
    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        with self._store.changed:
            due = [
                job.expires_at_ms
                if job.queue in self._store.paused and job.state == rules.QUEUED
                else rules.next_due_ms(job)
                for job in self._store.jobs.values()
                if (queues is None or job.queue in queues) and (effects is None or job.effect in effects)
            ]
            return min((due_ms for due_ms in due if due_ms is not None), default=None)

    @checked
    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        with self._store.changed:
            return [entry for entry in self._store.audit if id in (None, entry.id)][-limit:]

    # -- shared by the verbs --

    def _at(self, now_ms: int | None) -> int:
        return self.now_ms() if now_ms is None else now_ms

    def _put(self, job: Job) -> Job:
        return self._store.put(job, self.capabilities)

    def _move(self, id: str, move: Callable[[Job], Job | None]) -> bool:
        with self._store.writing():
            job = self._store.jobs.get(id)
            moved = None if job is None else move(job)
            if moved is not None:
                self._put(moved)
            return moved is not None

    def _operate(self, entry: AuditEntry, move: Callable[[Job], Job | None]) -> bool:
        with self._store.writing():
            before = self._store.jobs.get(entry.id)
            if before is None or not self._move(entry.id, move):
                return False
            after = self._store.jobs[entry.id]
            self._store.audit.append(
                replace(entry, from_state=before.state, to_state=after.state, version=after.version)
            )
            return True
