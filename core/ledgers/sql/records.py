"""The inputs and receipts that an operator's decision rests on, in the transaction that it is done in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from ...model.inputs import Input
from ...model.receipts import Published, Receipt
from .engine import Engine
from .reads import read_inputs
from .receipts import receipts
from .transaction import AnyTransaction


@dataclass(frozen=True, slots=True)
class Records(Generic[AnyTransaction]):
    """See ``operator.Records``."""

    transaction: AnyTransaction
    engine: Engine[AnyTransaction]

    def input(self, id: str) -> Input:
        """The input of a job that is there."""
        return read_inputs(self.transaction, [id])[id]

    def receipt(self, id: str) -> Receipt | None:
        """The receipt, if there is one."""
        return receipts(self.transaction, [id]).get(id)

    def publish(self, receipt: Receipt) -> Published:
        """Store it, or find the same one stored."""
        return self.engine.publish(self.transaction, receipt)
