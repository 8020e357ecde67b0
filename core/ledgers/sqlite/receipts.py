"""Receipts: written once, compared by value ever after; and the settlement that completes their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import InvalidInput, LedgerCorrupt, ReceiptConflict
from ...model.documents import compact, parse
from ...model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
    check_receipt,
    check_receipts,
    conflict,
    encode_receipts,
)
from .arrays import text_array
from .transaction import Transaction

_FEWEST_AT_ONCE: Final = 8
"""From this many on, statements for the whole batch are faster than some for each."""


def receipts(transaction: Transaction, ids: Iterable[str]) -> dict[str, Receipt]:
    """The receipts that are there."""
    rows = transaction.rows("receipts", {"ids": text_array(ids)})
    return {id: _receipt(transaction.path, id, text) for id, text in rows}


def publish(transaction: Transaction, receipt: Receipt) -> Published:
    """Store the receipt, or find the same one stored.

    Raises:
        ReceiptConflict: another one is stored; it stays.
    """
    text = compact(check_receipt(receipt).document())
    if transaction.change("add_receipt", (receipt.id, text)):
        return Published(receipt, reused=False)
    stored = receipts(transaction, [receipt.id])[receipt.id]
    if not _same(stored, receipt, text):
        raise conflict(stored, receipt)
    return Published(stored, reused=True)


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


def _same(stored: Receipt, receipt: Receipt, text: str) -> bool:
    # Stored as the same text is the same; and what is written differently may still be equal by value.
    return compact(stored.document()) == text or stored.same_as(receipt)


def _receipt(path: str, id: str, text: str) -> Receipt:
    what = f"{path}: the receipt of {id!r}"
    try:
        return Receipt.from_document(parse(text.encode("utf-8"), what=what))
    except InvalidInput as error:
        raise LedgerCorrupt(f"{what} cannot be read ({error}); it was left as it is") from error
