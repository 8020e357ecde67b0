"""Receipts of a directory ledger: linked to their names once, compared by value ever after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...documents import JSON
from ...errors import InvalidInput, LedgerFailed, ReceiptConflict
from ...inputs import text_sha256
from ...job import Job
from ...receipts import Published, Receipt, Settlement, check_outcome, check_receipt, conflict
from .store import Store


def publish(store: Store, receipt: Receipt) -> Published:
    """Link the receipt to its name, or compare it with what stands there.

    Raises:
        ReceiptConflict: another one stands there; it stays.
    """
    check_receipt(receipt)
    return _compare(store, receipt, linked=store.add_receipts([receipt])[0])


def publish_all(store: Store, settlements: Sequence[Settlement]) -> list[Published | None]:
    """Publish every receipt; None for each that contradicts the stored one."""
    receipts = [check_receipt(item.receipt) for item in settlements]
    published: list[Published | None] = []
    for receipt, linked in zip(receipts, store.add_receipts(receipts), strict=True):
        try:
            published.append(_compare(store, receipt, linked=linked))
        except ReceiptConflict:
            published.append(None)
    return published


def adopt(store: Store, job: Job, outcome: Mapping[str, JSON] | None) -> None:
    """Publish the outcome that an operator gives, or see that there is a receipt."""
    stored = store.receipt(job.id)
    if outcome is None:
        if stored is None:
            raise InvalidInput(f"the job {job.id!r} has no receipt: say what was done, as an outcome")
        return
    found = store.input(job.id)
    if found is None:
        store.missing_input(job.id)
    publish(
        store,
        Receipt(
            job.id,
            text_sha256(found.text),
            check_outcome(outcome),
            job.effect,
            None if stored is None else stored.effect_version,
        ),
    )


def _compare(store: Store, receipt: Receipt, *, linked: bool) -> Published:
    if linked:
        return Published(receipt, reused=False)
    stored = store.receipt(receipt.id)
    if stored is None:
        raise LedgerFailed(f"{store.path}: the receipt of {receipt.id!r} vanished while it was compared")
    if not stored.same_as(receipt):
        raise conflict(stored, receipt)
    return Published(stored, reused=True)
