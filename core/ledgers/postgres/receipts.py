"""Receipts: written once, compared by value ever after; and the settlement that completes their jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.documents import compact
from ...model.inputs import is_name
from ...model.receipts import (
    Published,
    Receipt,
    Settled,
    Settlement,
    check_receipts,
)
from ..sql import receipts
from .arrays import (
    bytea_array,
    int_array,
    text_array,
)
from .transaction import Parameters, Row, Transaction


def publish(transaction: Transaction, receipt: Receipt) -> Published:
    """Store the receipt, or find the same one stored; see ``sql.receipts``."""
    (data,) = _data_of([receipt])
    return receipts.publish(
        transaction, receipt, data.decode(), lambda: bool(_add(transaction, {receipt.id: data}))
    )


def complete(transaction: Transaction, id: str, version: int, now_ms: int) -> bool:
    """Complete the job under this fence; see ``job.complete``."""
    return is_name(id) and bool(_complete(transaction, [(id, version)], now_ms))


class Batch:
    """Settlements, sent ahead as one statement that is all where every receipt is new and every job is held."""

    def __init__(self, settlements: Sequence[Settlement], now_ms: int | None) -> None:
        self._settlements = settlements
        self._data = _data_of([item.receipt for item in settlements])
        ids = [item.id for item in settlements]
        self.ahead: list[tuple[str, Parameters]] = []
        """What to send with the beginning of the transaction."""
        # The statement takes each id once.
        if settlements and len(set(ids)) == len(settlements):
            versions = int_array([item.version for item in settlements])
            batch = {"ids": text_array(ids), "versions": versions, "receipts": bytea_array(self._data)}
            self.ahead.append(("settle", batch | {"count": len(settlements), "now_ms": now_ms}))

    def settled(
        self, transaction: Transaction, answers: Sequence[Sequence[Row]], now_ms: int
    ) -> list[Settled]:
        """What became of each, by what the statement answered, if it was sent; what it left is done now."""
        items = self._settlements
        if not items:
            return []
        if not answers:
            new = _add(transaction, _firsts(items, self._data))
            return self._complete_rest(transaction, new, now_ms)
        ((short, published, completed),) = answers[0]
        if not short:
            return [Settled(item.id, item.version, True, False, False) for item in items]
        new = set(published or ())
        if len(new) < len(items):
            return self._complete_rest(transaction, new, now_ms)
        done = set(completed or ())
        return [Settled(item.id, item.version, item.id in done, False, False) for item in items]

    def _complete_rest(self, transaction: Transaction, new: set[str], now_ms: int) -> list[Settled]:
        """Compare the receipts that were not new, and complete the jobs of those that are the same."""
        reuses = _compare(transaction, [item.receipt for item in self._settlements], self._data, new)
        fences = [
            (item.id, item.version)
            for item, reused in zip(self._settlements, reuses, strict=True)
            if reused is not None
        ]
        completed = _complete(transaction, fences, now_ms)
        settled = []
        for item, reused in zip(self._settlements, reuses, strict=True):
            fence = (item.id, item.version)
            done = reused is not None and fence in completed
            if done:
                completed.remove(fence)  # the same again is refused
            settled.append(Settled(item.id, item.version, done, reused is True, reused is None))
        return settled


def publish_all(transaction: Transaction, published: Sequence[Receipt]) -> None:
    """Store the receipts, of different ids, that are new."""
    ids = [receipt.id for receipt in published]
    _add(transaction, dict(zip(ids, _data_of(published), strict=True)))


def _firsts(settlements: Sequence[Settlement], data: Sequence[bytes]) -> dict[str, bytes]:
    """Of receipts with one id, the first is the one to store."""
    firsts: dict[str, bytes] = {}
    for item, one in zip(settlements, data, strict=True):
        firsts.setdefault(item.receipt.id, one)
    return firsts


def _compare(
    transaction: Transaction, published: Sequence[Receipt], data: Sequence[bytes], new: set[str]
) -> list[bool | None]:
    """Of each receipt whether it was there before; None where another one was, which stays."""
    new = set(new)
    stored = receipts.receipts(transaction, [receipt.id for receipt in published])
    reuses: list[bool | None] = []
    for receipt, one in zip(published, data, strict=True):
        if receipt.id in new:
            new.remove(receipt.id)
            reuses.append(False)
        else:
            reuses.append(True if receipts.is_same(stored[receipt.id], receipt, one.decode()) else None)
    return reuses


def _add(transaction: Transaction, data: Mapping[str, bytes]) -> set[str]:
    """Store what is new; which ids that is."""
    new = {"ids": text_array(list(data)), "receipts": bytea_array(list(data.values()))}
    return {id for (id,) in transaction.rows("add_receipts", new)}


def _complete(
    transaction: Transaction, fences: Sequence[tuple[str, int]], now_ms: int
) -> set[tuple[str, int]]:
    """Complete the jobs under these fences; which were."""
    if not fences:
        return set()
    held = {
        "ids": text_array([id for id, _ in fences]),
        "versions": int_array([version for _, version in fences]),
        "now_ms": now_ms,
    }
    return {(id, version) for id, version in transaction.rows("complete", held)}


def _data_of(published: Sequence[Receipt]) -> list[bytes]:
    check_receipts(published)
    return [compact(receipt.document()).encode() for receipt in published]
