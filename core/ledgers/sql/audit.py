"""The audit: every manual action, recorded in the transaction that it is done in."""

from __future__ import annotations

from dataclasses import astuple

from ...model.records import AuditEntry
from .transaction import Transaction


def record(transaction: Transaction, entry: AuditEntry) -> None:
    """Add one manual action."""
    transaction.change("record", astuple(entry))


def audit(transaction: Transaction, id: str | None, limit: int) -> list[AuditEntry]:
    """The latest entries, oldest first."""
    if id is None:
        return [AuditEntry(*row) for row in transaction.rows("audit", {"limit": limit})]
    return [AuditEntry(*row) for row in transaction.rows("audit_of", {"id": id, "limit": limit})]
