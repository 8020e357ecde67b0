"""Receipts as both engines keep them: read, and compared with those that are published."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...errors import InvalidInput, LedgerCorrupt
from ...model.documents import compact, parse
from ...model.receipts import Published, Receipt, conflict
from .transaction import Transaction


def receipts(transaction: Transaction, ids: Iterable[str]) -> dict[str, Receipt]:
    """The receipts that are there.

    Raises:
        LedgerCorrupt: one cannot be read.
    """
    rows = transaction.rows("receipts", {"ids": transaction.names(ids)})
    return {id: _receipt(transaction.location, id, stored) for id, stored in rows}


def publish(transaction: Transaction, receipt: Receipt, text: str, add: Callable[[], bool]) -> Published:
    """Store the receipt by ``add``, which says whether it was new, or find the same one stored.

    Raises:
        ReceiptConflict: another one is stored; it stays.
    """
    if add():
        return Published(receipt, reused=False)
    stored = receipts(transaction, [receipt.id])[receipt.id]
    if not is_same(stored, receipt, text):
        raise conflict(stored, receipt)
    return Published(stored, reused=True)


def is_same(stored: Receipt, receipt: Receipt, text: str) -> bool:
    """Whether a stored receipt is the one that was published, whose document is ``text``."""
    # Stored as the same text is the same; and what is written differently may still be equal by value.
    return compact(stored.document()) == text or stored.same_as(receipt)


def _receipt(location: str, id: str, stored: str | bytes) -> Receipt:
    what = f"{location}: the receipt of {id!r}"
    data = stored.encode("utf-8") if isinstance(stored, str) else stored
    try:
        return Receipt.from_document(parse(data, what=what))
    except InvalidInput as error:
        raise LedgerCorrupt(f"{what} cannot be read ({error}); it was left as it is") from error
