"""What an operator does to a job, whichever ledger holds it: who acts, what is recorded, what a decision rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..errors import InvalidInput
from ..model import job as rules
from ..model.checks import check_storable
from ..model.documents import JSON
from ..model.inputs import Input
from ..model.job import Decision, Job
from ..model.receipts import Published, Receipt, check_outcome
from ..model.records import AuditEntry


class Records(Protocol):
    """The inputs and receipts of a ledger, within the transaction that moves the job."""

    def input(self, id: str) -> Input:
        """The input of a job that is there.

        Raises:
            LedgerCorrupt: it has none.
        """

    def receipt(self, id: str) -> Receipt | None:
        """The receipt, if there is one."""

    def publish(self, receipt: Receipt) -> Published:
        """Store it, or find the same one stored.

        Raises:
            ReceiptConflict: another one is stored; it stays.
        """


ManualRule: TypeAlias = Callable[[Job, int, Records], Job | None]
"""A move of ``job.py`` that an operator makes, of the job at an instant; None where it is refused."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Who acts, and why.

    Raises:
        InvalidInput: one of them cannot be stored.
    """

    actor: str | None
    reason: str | None

    def __post_init__(self) -> None:
        if self.actor is not None:
            check_storable(self.actor, "actor")
        if self.reason is not None:
            check_storable(self.reason, "reason")

    def entry(
        self, action: str, id: str, now_ms: int, before: Job | None = None, after: Job | None = None
    ) -> AuditEntry:
        """What is recorded of an action on a job; ``after`` None: nothing is left of it but its last version."""
        last = before if after is None else after
        return AuditEntry(
            now_ms,
            action,
            id,
            self.actor,
            self.reason,
            from_state=None if before is None else before.state,
            to_state=None if after is None else after.state,
            version=None if last is None else last.version,
        )


def cancel(*, error: str) -> ManualRule:
    """See ``job.cancel``."""
    return lambda job, now_ms, records: rules.cancel(job, now_ms=now_ms, error=error)


def reschedule(*, run_at_ms: int | None, priority: int | None) -> ManualRule:
    """See ``job.reschedule``."""
    return lambda job, now_ms, records: rules.reschedule(job, run_at_ms=run_at_ms, priority=priority)


def redrive() -> ManualRule:
    """See ``job.redrive``."""
    return lambda job, now_ms, records: rules.redrive(
        job, now_ms=now_ms, has_receipt=records.receipt(job.id) is not None
    )


def resolve(*, decision: Decision, outcome: Mapping[str, JSON] | None, error: str) -> ManualRule:
    """See ``job.resolve``; ``applied`` publishes the outcome, or finds a receipt, in the same transaction."""

    def rule(job: Job, now_ms: int, records: Records) -> Job | None:
        resolved = rules.resolve(job, now_ms=now_ms, decision=decision, error=error)
        if resolved is not None and decision == "applied":
            _adopt(records, job, outcome)
        return resolved

    return rule


def _adopt(records: Records, job: Job, outcome: Mapping[str, JSON] | None) -> None:
    """Publish what the operator says was done, or let the receipt that is there stand."""
    stored = records.receipt(job.id)
    if outcome is None:
        if stored is None:
            raise InvalidInput(f"the job {job.id!r} has no receipt: say what was done, as an outcome")
        return
    # The version that is stored, if any: an operator only says the same. No version of the effect said anything else.
    version = None if stored is None else stored.effect_version
    digest = records.input(job.id).sha256
    records.publish(Receipt(job.id, digest, check_outcome(dict(outcome)), job.effect, version))
