"""The verbs that move one job by a rule of ``job.py``: each kind of ledger brings the transaction around them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..model import job as rules
from ..model.documents import JSON
from ..model.job import ClaimRequest, Decision, Job
from ..model.receipts import Settled, Settlement
from . import operator as operating
from .arguments import checked
from .operator import ManualRule, Operator

Rule: TypeAlias = Callable[[Job, int], Job | None]
"""One of the moves of ``job.py``, of the job at an instant; None where it is refused."""


class MovingVerbs(ABC):
    """The claim, the holder's moves and the operator's; see the protocol for what each promises."""

    @abstractmethod
    def _move(self, id: str, rule: Rule, now_ms: int | None) -> bool:
        """Apply the rule to the job, in a transaction of its own; False where it is refused."""

    @abstractmethod
    def _act(self, action: str, id: str, rule: ManualRule, operator: Operator, now_ms: int | None) -> bool:
        """As ``_move``, and recorded in the audit in the same transaction."""

    # -- claim --

    @abstractmethod
    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        """Settlements and claim in one commit; nothing is claimed where a settlement was refused."""

    def claim(self, request: ClaimRequest, *, now_ms: int | None = None) -> list[Job]:
        """A ``settle_and_claim`` that settles nothing."""
        return self.settle_and_claim((), request, now_ms=now_ms)[1]

    # -- the holder's moves --

    @checked
    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``job.begin``."""
        return self._move(id, lambda job, now_ms: rules.begin(job, version, now_ms=now_ms), now_ms)

    @checked
    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        """See ``job.heartbeat``; one that moves nothing writes nothing."""
        return self._move(
            id, lambda job, now_ms: rules.heartbeat(job, version, now_ms=now_ms, extend_ms=extend_ms), now_ms
        )

    @checked
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
        """See ``job.retry``."""

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

    @checked
    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``job.fail``."""
        return self._move(
            id, lambda job, now_ms: rules.fail(job, version, now_ms=now_ms, error=error), now_ms
        )

    @checked
    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """See ``job.release``."""
        return self._move(id, lambda job, now_ms: rules.release(job, version, now_ms=now_ms), now_ms)

    @checked
    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """See ``job.hold``."""
        return self._move(
            id, lambda job, now_ms: rules.hold(job, version, now_ms=now_ms, error=error), now_ms
        )

    # -- the operator's moves --

    @checked
    def cancel(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        error: str = rules.CANCELLED,
        now_ms: int | None = None,
    ) -> bool:
        """See ``job.cancel``."""
        return self._act("cancel", id, operating.cancel(error=error), Operator(actor, reason), now_ms)

    @checked
    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """See ``job.redrive``."""
        return self._act("redrive", id, operating.redrive(), Operator(actor, reason), now_ms)

    @checked
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
        """See ``job.resolve``."""
        rule = operating.resolve(decision=decision, outcome=outcome, error=error)
        return self._act("resolve", id, rule, Operator(actor, reason), now_ms)
