"""The audit: every manual action, recorded in the transaction that it is done in."""

from __future__ import annotations

from ...ledger import AuditEntry
from ...texts import storable
from .transaction import Transaction


def record(transaction: Transaction, entry: AuditEntry) -> None:
    """Add one manual action."""
    actor, reason = (None if text is None else storable(text) for text in (entry.actor, entry.reason))
    values = (entry.at_ms, entry.action, entry.id, actor, reason)
    transaction.change("record", (*values, entry.from_state, entry.to_state, entry.version))


def audit(transaction: Transaction, id: str | None, limit: int) -> list[AuditEntry]:
    """The latest entries, oldest first."""
    if id is None:
        return [AuditEntry(*row) for row in transaction.rows("audit", {"limit": limit})]
    return [AuditEntry(*row) for row in transaction.rows("audit_of", {"id": id, "limit": limit})]
