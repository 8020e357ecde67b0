"""The inputs and receipts that an operator's decision rests on, by an engine's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...model.inputs import Input
from ...model.receipts import Published, Receipt


@dataclass(frozen=True, slots=True)
class Records:
    """See ``operating.Records``; each function is bound to the transaction of the decision."""

    read_inputs: Callable[[Sequence[str]], Mapping[str, Input]]
    read_receipts: Callable[[Sequence[str]], Mapping[str, Receipt]]
    publish_receipt: Callable[[Receipt], Published]

    def input(self, id: str) -> Input:
        """The input of a job that is there."""
        return self.read_inputs([id])[id]

    def receipt(self, id: str) -> Receipt | None:
        """The receipt, if there is one."""
        return self.read_receipts([id]).get(id)

    def publish(self, receipt: Receipt) -> Published:
        """Store it, or find the same one stored."""
        return self.publish_receipt(receipt)
