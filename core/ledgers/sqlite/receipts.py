"""Receipts: written once, compared by value ever after; and the settlement that completes their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...errors import ReceiptConflict
from ...model.documents import compact
from ...model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
    check_receipt,
    check_receipts,
    encode_receipts,
)
from ..sql import receipts
from .transaction import Transaction

_FEWEST_AT_ONCE: Final = 8
"""From this many on, statements for the whole batch are faster than some for each."""


def publish(transaction: Transaction, receipt: Receipt) -> Published:
    """Store the receipt, or find the same one stored; see ``sql.receipts``."""
    text = compact(check_receipt(receipt).document())
    return receipts.publish(
        transaction, receipt, text, lambda: transaction.change("add_receipt", (receipt.id, text)) == 1
    )


def complete(transaction: Transaction, id: str, version: int, now_ms: int) -> bool:
    """Complete the job under this fence; see ``job.complete``."""
    return transaction.change("complete", (id, version, now_ms)) == 1


def settle(transaction: Transaction, settlements: Sequence[Settlement], now_ms: int) -> list[Settled]:
    """Publish and complete each; the usual batch, in which all is new and held, by two statements."""
    if len(settlements) < _FEWEST_AT_ONCE:
        check_receipts([item.receipt for item in settlements])
        return [_settle_one(transaction, settlement, now_ms) for settlement in settlements]
    try:
        with transaction.savepoint():
            _settle_new(transaction, settlements, now_ms)
    except _LookCloser:
        return [_settle_one(transaction, settlement, now_ms) for settlement in settlements]
    return [Settled(item.id, item.version, True, False, False) for item in settlements]


class _LookCloser(Exception):
    """Not every receipt of the batch was new, or not every job was held."""


def _settle_new(transaction: Transaction, settlements: Sequence[Settlement], now_ms: int) -> None:
    """One row inserted and one updated for each is the proof; ids that stand twice fall short of it."""
    documents = encode_receipts([item.receipt for item in settlements])
    versions = {item.id: item.version for item in settlements}
    if transaction.change("add_receipts", {"receipts": documents}) != len(settlements):
        raise _LookCloser
    done = transaction.change("complete_all", {"versions": compact(versions), "now_ms": now_ms})
    if done != len(settlements):
        raise _LookCloser


def _settle_one(transaction: Transaction, item: Settlement, now_ms: int) -> Settled:
    try:
        published = publish(transaction, item.receipt)
    except ReceiptConflict:
        return Settled(item.id, item.version, completed=False, reused=False, conflict=True)
    completed = complete(transaction, item.id, item.version, now_ms)
    return Settled(item.id, item.version, completed, published.reused, conflict=False)
