"""What an operator does: each action is recorded in the audit, in its own transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ... import job as rules
from ...documents import JSON
from ...errors import InvalidInput, LedgerCorrupt
from ...job import DEAD, Decision, Job
from ...receipts import Receipt, check_outcome
from ...texts import storable
from .burying import purge as bury_for_good
from .looking import read_inputs
from .moving import Rule, find, move
from .receipting import publish, receipts
from .transaction import Transaction


@dataclass(frozen=True, slots=True)
class Operator:
    """Who acts, why and when."""

    actor: str | None
    reason: str | None
    now_ms: int


def cancel(transaction: Transaction, id: str, operator: Operator, *, error: str) -> bool:
    """See ``job.cancel``."""
    return _act(
        transaction, "cancel", id, operator, lambda job, now_ms: rules.cancel(job, now_ms=now_ms, error=error)
    )


def redrive(transaction: Transaction, id: str, operator: Operator) -> bool:
    """See ``job.redrive``."""
    has_receipt = bool(receipts(transaction, [id]))
    return _act(
        transaction,
        "redrive",
        id,
        operator,
        lambda job, now_ms: rules.redrive(job, now_ms=now_ms, has_receipt=has_receipt),
    )


def resolve(
    transaction: Transaction,
    id: str,
    operator: Operator,
    *,
    decision: Decision,
    outcome: Mapping[str, JSON] | None,
    error: str,
) -> bool:
    """See ``job.resolve``; ``applied`` publishes the outcome, or finds a receipt, in the same transaction."""

    def rule(job: Job, now_ms: int) -> Job | None:
        resolved = rules.resolve(job, now_ms=now_ms, decision=decision, error=error)
        if resolved is not None and decision == "applied":
            _adopt(transaction, job, outcome)
        return resolved

    return _act(transaction, "resolve", id, operator, rule)


def purge(transaction: Transaction, id: str, operator: Operator) -> bool:
    """Forget a dead job, whatever its retention."""
    job = find(transaction, id)
    if job is None or job.state != DEAD:
        return False
    bury_for_good(transaction, [id])
    _record(transaction, "purge", id, operator, job.state, None, job.version)
    return True


def pause(transaction: Transaction, queue: str, operator: Operator) -> bool:
    """Let no claim pick from the queue; False if it was paused."""
    if not transaction.change("pause", (queue,)):
        return False
    _record(transaction, "pause", queue, operator)
    return True


def resume(transaction: Transaction, queue: str, operator: Operator) -> bool:
    """End the pause; False if there was none."""
    if not transaction.change("resume", (queue,)):
        return False
    transaction.wakes = True
    _record(transaction, "resume", queue, operator)
    return True


def record_seal(transaction: Transaction, destination: str, operator: Operator) -> None:
    """Seals are actions too."""
    _record(transaction, "seal", destination, operator)


def _act(transaction: Transaction, action: str, id: str, operator: Operator, rule: Rule) -> bool:
    moved = move(transaction, id, rule, operator.now_ms)
    if moved is None:
        return False
    before, after = moved
    _record(transaction, action, id, operator, before.state, after.state, after.version)
    return True


def _record(
    transaction: Transaction,
    action: str,
    id: str,
    operator: Operator,
    from_state: str | None = None,
    to_state: str | None = None,
    version: int | None = None,
) -> None:
    actor, reason = (None if text is None else storable(text) for text in (operator.actor, operator.reason))
    transaction.change("record", (operator.now_ms, action, id, actor, reason, from_state, to_state, version))


def _adopt(transaction: Transaction, job: Job, outcome: Mapping[str, JSON] | None) -> None:
    """Publish what the operator says was done, or let the receipt that is there stand."""
    stored = receipts(transaction, [job.id]).get(job.id)
    if outcome is None:
        if stored is None:
            raise InvalidInput(f"the job {job.id!r} has no receipt: say what was done, as an outcome")
        return
    stored_input = read_inputs(transaction, [job.id]).get(job.id)
    if stored_input is None:
        raise LedgerCorrupt(
            f"{transaction.address.location}: the job {job.id!r} has no input; restore the ledger from a back-up"
        )
    version = None if stored is None else stored.effect_version
    publish(
        transaction, Receipt(job.id, stored_input.sha256, check_outcome(dict(outcome)), job.effect, version)
    )
