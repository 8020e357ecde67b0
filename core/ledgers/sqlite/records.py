"""The inputs and receipts that an operator's decision rests on, within its transaction."""

from __future__ import annotations

from ...inputs import Input
from ...receipts import Published, Receipt
from . import looking, receipting
from .transaction import Transaction


class Records:
    """See ``operating.Records``."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def input(self, id: str) -> Input:
        """The input of a job that is there."""
        return looking.read_inputs(self._transaction, [id])[id]

    def receipt(self, id: str) -> Receipt | None:
        """The receipt, if there is one."""
        return receipting.receipts(self._transaction, [id]).get(id)

    def publish(self, receipt: Receipt) -> Published:
        """Store it, or find the same one stored."""
        return receipting.publish(self._transaction, receipt)
