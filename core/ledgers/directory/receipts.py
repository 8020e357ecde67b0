"""Receipts of a directory ledger: linked to their names once, compared by value ever after; and what rests on them."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import LedgerFailed, ReceiptConflict
from ...model import job as rules
from ...model.inputs import Input
from ...model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
    check_receipt,
    check_receipts,
    conflict,
)
from .store import Store
from .table import Table


def publish(store: Store, receipt: Receipt) -> Published:
    """Link the receipt to its name, or compare it with the stored one.

    Raises:
        ReceiptConflict: another one is stored; it stays.
    """
    check_receipt(receipt)
    linked = store.add_receipts([receipt])[0]
    store.sync_receipts()
    return _compare(store, receipt, linked=linked)


def publish_all(store: Store, settlements: Sequence[Settlement]) -> list[Published | None]:
    """Publish every receipt; None for each that contradicts the stored one.

    They are durable when the table that the caller opens next is written or left.
    """
    receipts = [item.receipt for item in settlements]
    check_receipts(receipts)
    published: list[Published | None] = []
    for receipt, linked in zip(receipts, store.add_receipts(receipts), strict=True):
        try:
            published.append(_compare(store, receipt, linked=linked))
        except ReceiptConflict:
            published.append(None)
    return published


def complete_all(
    table: Table, settlements: Sequence[Settlement], published: Sequence[Published | None], now_ms: int
) -> list[Settled]:
    """Complete the job of each settlement whose receipt is stored; the results in the order of the settlements."""
    answers = []
    for item, stored in zip(settlements, published, strict=True):
        job = table.jobs.get(item.id)
        done = job and stored and rules.complete(job, item.version, now_ms=now_ms)
        if done:
            table.put(done)
        answers.append(
            Settled(
                item.id,
                item.version,
                completed=bool(done),
                reused=stored is not None and stored.reused,
                conflict=stored is None,
            )
        )
    return answers


class Records:
    """See ``operating.Records``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def input(self, id: str) -> Input:
        """The input of a job that is there."""
        found = self._store.input(id)
        if found is None:
            self._store.missing_input(id)
        return found

    def receipt(self, id: str) -> Receipt | None:
        """The receipt, if there is one."""
        return self._store.receipt(id)

    def publish(self, receipt: Receipt) -> Published:
        """Link the receipt to its name, or find the same one there."""
        return publish(self._store, receipt)


def _compare(store: Store, receipt: Receipt, *, linked: bool) -> Published:
    if linked:
        return Published(receipt, reused=False)
    stored = store.receipt(receipt.id)
    if stored is None:
        raise LedgerFailed(
            f"{store.path}: the receipt of {receipt.id!r} vanished while it was compared; let nobody remove files of "
            "the store while programs have it open, and run the command again"
        )
    if not stored.same_as(receipt):
        raise conflict(stored, receipt)
    return Published(stored, reused=True)
