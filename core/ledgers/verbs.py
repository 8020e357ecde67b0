"""The verbs of every kind of ledger: each checks its arguments, then does the kind's own part, ``_verb``.

``protocol.py`` says what each verb promises. The moves of one job are rules of ``model/job.py``; a kind brings only the
transaction around them, ``_move`` and ``_act``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..errors import InvalidInput
from ..model import job as rules
from ..model.checks import MAX_SPAN_MS, check_int, check_string
from ..model.documents import JSON
from ..model.inputs import PRIORITIES, Input, NewJob, Request, check_name, check_request, check_schedule_name
from ..model.job import ClaimRequest, Decision, Job
from ..model.queue_counts import QueueCounts
from ..model.receipts import Receipt, Settled, Settlement
from ..model.records import Applied, AuditEntry, Enqueued, Export, Fire, Schedule, Swept
from ..model.schedules import check_schedule
from . import operator
from .arguments import check_batch, check_fence, check_ids, check_instant, check_served
from .operator import ManualRule, Operator

Rule: TypeAlias = Callable[[Job, int], Job | None]
"""One of the moves of ``job.py``, of the job at an instant; None where it is refused."""


class LedgerVerbs(ABC):
    """The part of a ledger that is the same for every kind; a verb whose arguments need no check is the kind's own."""

    # -- enqueue --

    def enqueue(
        self, jobs: Iterable[NewJob], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        request = check_request(jobs)
        check_instant(now_ms)
        return self._enqueue(request, connection, now_ms)

    @abstractmethod
    def _enqueue(self, request: Request, connection: Any, now_ms: int | None) -> list[Enqueued]: ...

    # -- claim --

    def claim(self, request: ClaimRequest, *, now_ms: int | None = None) -> list[Job]:
        return self.settle_and_claim((), request, now_ms=now_ms)[1]

    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        check_batch(settlements)
        if not isinstance(request, ClaimRequest):
            raise InvalidInput(f"a claim takes a ClaimRequest, not {request!r:.40}")
        check_instant(now_ms)
        return self._settle_and_claim(settlements, request, now_ms)

    @abstractmethod
    def _settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, now_ms: int | None
    ) -> tuple[list[Settled], list[Job]]: ...

    def read_inputs(self, ids: Iterable[str]) -> dict[str, Input]:
        return self._read_inputs(check_ids(ids))

    @abstractmethod
    def _read_inputs(self, ids: list[str]) -> dict[str, Input]: ...

    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        return self._receipts(check_ids(ids))

    @abstractmethod
    def _receipts(self, ids: list[str]) -> dict[str, Receipt]: ...

    # -- the moves of a lease's owner --

    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        check_fence(version)
        check_instant(now_ms)
        return self._move(id, lambda job, now_ms: rules.begin(job, version, now_ms=now_ms), now_ms)

    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        check_fence(version)
        check_int(extend_ms, "extend_ms", high=MAX_SPAN_MS)
        check_instant(now_ms)
        return self._move(
            id, lambda job, now_ms: rules.heartbeat(job, version, now_ms=now_ms, extend_ms=extend_ms), now_ms
        )

    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        check_fence(version)
        check_instant(now_ms)
        return self._complete(id, version, now_ms)

    def _complete(self, id: str, version: int, now_ms: int | None) -> bool:
        return self._move(id, lambda job, now_ms: rules.complete(job, version, now_ms=now_ms), now_ms)

    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        check_batch(settlements)
        check_instant(now_ms)
        return self._settle(settlements, now_ms) if settlements else []

    @abstractmethod
    def _settle(self, settlements: Sequence[Settlement], now_ms: int | None) -> list[Settled]: ...

    def retry(
        self,
        id: str,
        version: int,
        *,
        run_at_ms: int | None,
        error: str | None,
        max_attempts: int,
        exhausted_error: str = rules.EXHAUSTED,
        now_ms: int | None = None,
    ) -> bool:
        check_fence(version)
        check_instant(run_at_ms, "run_at_ms")
        if error is not None:
            check_string(error, "error")
        check_int(max_attempts, "max_attempts", low=1)
        check_string(exhausted_error, "exhausted_error")
        check_instant(now_ms)

        def rule(job: Job, now_ms: int) -> Job | None:
            return rules.retry(
                job,
                version,
                now_ms=now_ms,
                run_at_ms=run_at_ms,
                error=error,
                max_attempts=max_attempts,
                exhausted_error=exhausted_error,
            )

        return self._move(id, rule, now_ms)

    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        check_fence(version)
        check_string(error, "error")
        check_instant(now_ms)
        return self._move(
            id, lambda job, now_ms: rules.fail(job, version, now_ms=now_ms, error=error), now_ms
        )

    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        check_fence(version)
        check_instant(now_ms)
        return self._move(id, lambda job, now_ms: rules.release(job, version, now_ms=now_ms), now_ms)

    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        check_fence(version)
        check_string(error, "error")
        check_instant(now_ms)
        return self._move(
            id, lambda job, now_ms: rules.hold(job, version, now_ms=now_ms, error=error), now_ms
        )

    @abstractmethod
    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        """Apply the rule to the job, in a transaction of its own; False where it is refused."""

    # -- the moves of an operator --

    def cancel(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        error: str = rules.CANCELLED,
        now_ms: int | None = None,
    ) -> bool:
        check_string(error, "error")
        check_instant(now_ms)
        return self._act("cancel", id, operator.cancel(error=error), Operator(actor, reason), now_ms)

    def reschedule(
        self,
        id: str,
        *,
        run_at_ms: int | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
        now_ms: int | None = None,
    ) -> bool:
        if run_at_ms is None and priority is None:
            raise InvalidInput("say what is to change: run_at_ms, priority, or both")
        check_instant(run_at_ms, "run_at_ms")
        check_instant(now_ms)
        if priority is not None:
            check_int(priority, "priority", low=PRIORITIES[0], high=PRIORITIES[1])
        rule = operator.reschedule(run_at_ms=run_at_ms, priority=priority)
        return self._act("reschedule", id, rule, Operator(actor, reason), now_ms)

    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        check_instant(now_ms)
        return self._act("redrive", id, operator.redrive(), Operator(actor, reason), now_ms)

    def resolve(
        self,
        id: str,
        *,
        decision: Decision,
        outcome: Mapping[str, JSON] | None = None,
        actor: str | None = None,
        reason: str | None = None,
        error: str = rules.FAILED_BY_OPERATOR,
        now_ms: int | None = None,
    ) -> bool:
        check_string(error, "error")
        check_instant(now_ms)
        rule = operator.resolve(decision=decision, outcome=outcome, error=error)
        return self._act("resolve", id, rule, Operator(actor, reason), now_ms)

    @abstractmethod
    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        """As ``_move``, and recorded in the audit in the same transaction."""

    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        check_instant(now_ms)
        return self._purge(id, Operator(actor, reason), now_ms)

    @abstractmethod
    def _purge(self, id: str, operator: Operator, now_ms: int | None) -> bool: ...

    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        check_instant(now_ms)
        return self._sweep_expired(queue, now_ms)

    @abstractmethod
    def _sweep_expired(self, queue: str | None, now_ms: int | None) -> Swept: ...

    # -- looking --

    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        check_int(since_ms, "since_ms")
        check_instant(now_ms)
        return self._queue_counts(since_ms, now_ms)

    @abstractmethod
    def _queue_counts(self, since_ms: int, now_ms: int | None) -> list[QueueCounts]: ...

    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        return self._latest_deaths(check_int(limit, "limit", low=1))

    @abstractmethod
    def _latest_deaths(self, limit: int) -> list[Job]: ...

    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        check_served(queues, effects)
        return self._next_due_ms(queues, effects)

    @abstractmethod
    def _next_due_ms(self, queues: Sequence[str] | None, effects: Sequence[str] | None) -> int | None: ...

    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        return self._audit(id, check_int(limit, "limit", low=1))

    @abstractmethod
    def _audit(self, id: str | None, limit: int) -> list[AuditEntry]: ...

    # -- transferring a whole ledger --

    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        check_instant(now_ms)
        self._seal(destination, Operator(actor, None), now_ms)

    @abstractmethod
    def _seal(self, destination: str, operator: Operator, now_ms: int | None) -> None: ...

    def begin_copy(self, source: str, *, actor: str | None = None, now_ms: int | None = None) -> bool:
        check_instant(now_ms)
        return self._begin_copy(source, Operator(actor, None), now_ms)

    @abstractmethod
    def _begin_copy(self, source: str, operator: Operator, now_ms: int | None) -> bool: ...

    def end_copy(
        self,
        source: str,
        *,
        paused: Sequence[str] = (),
        schedules: Sequence[Schedule] = (),
        actor: str | None = None,
        now_ms: int | None = None,
    ) -> bool:
        check_instant(now_ms)
        return self._end_copy(source, paused, schedules, Operator(actor, f"copied from {source}"), now_ms)

    @abstractmethod
    def _end_copy(
        self,
        source: str,
        paused: Sequence[str],
        schedules: Sequence[Schedule],
        operator: Operator,
        now_ms: int | None,
    ) -> bool: ...

    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        return self._export_rows(after, check_int(limit, "limit", low=1))

    @abstractmethod
    def _export_rows(self, after: str | None, limit: int) -> Export: ...

    # -- pauses and schedules --

    def pause(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        check_name(queue, "queue")
        check_instant(now_ms)
        return self._pause(queue, Operator(actor, reason), now_ms)

    @abstractmethod
    def _pause(self, queue: str, operator: Operator, now_ms: int | None) -> bool: ...

    def resume(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        check_name(queue, "queue")
        check_instant(now_ms)
        return self._resume(queue, Operator(actor, reason), now_ms)

    @abstractmethod
    def _resume(self, queue: str, operator: Operator, now_ms: int | None) -> bool: ...

    def register_schedule(self, schedule: Schedule, *, now_ms: int | None = None) -> None:
        check_schedule(schedule)
        check_instant(now_ms)
        self._register_schedule(replace(schedule, owner=None), now_ms)

    @abstractmethod
    def _register_schedule(self, schedule: Schedule, now_ms: int | None) -> None: ...

    def apply_schedules(
        self,
        schedules: Iterable[Schedule],
        *,
        owner: str = "config",
        actor: str | None = None,
        dry_run: bool = False,
        now_ms: int | None = None,
    ) -> Applied:
        check_name(owner, "owner")
        wanted = [replace(check_schedule(schedule), owner=owner, paused=False) for schedule in schedules]
        check_instant(now_ms)
        return self._apply_schedules(wanted, owner, Operator(actor, f"applied as {owner}"), dry_run, now_ms)

    @abstractmethod
    def _apply_schedules(
        self, wanted: list[Schedule], owner: str, operator: Operator, dry_run: bool, now_ms: int | None
    ) -> Applied: ...

    def pause_schedule(
        self, name: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        check_schedule_name(name)
        check_instant(now_ms)
        return self._pause_schedule(name, Operator(actor, reason), now_ms)

    @abstractmethod
    def _pause_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool: ...

    def resume_schedule(
        self, name: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        check_schedule_name(name)
        check_instant(now_ms)
        return self._resume_schedule(name, Operator(actor, reason), now_ms)

    @abstractmethod
    def _resume_schedule(self, name: str, operator: Operator, now_ms: int | None) -> bool: ...

    def run_schedule(
        self, name: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> Fire | None:
        check_schedule_name(name)
        check_instant(now_ms)
        return self._run_schedule(name, Operator(actor, reason), now_ms)

    @abstractmethod
    def _run_schedule(self, name: str, operator: Operator, now_ms: int | None) -> Fire | None: ...

    def tick(self, *, now_ms: int | None = None) -> list[Fire]:
        check_instant(now_ms)
        return self._tick(now_ms)

    @abstractmethod
    def _tick(self, now_ms: int | None) -> list[Fire]: ...
