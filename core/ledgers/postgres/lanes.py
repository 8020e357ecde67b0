"""The lanes of a claim: which part of each index on its path it reads.

A lane is a queue and an effect where the queues are named, and an effect where all queues are served. For both there
are indexes, so that jobs of other queues and effects cost nothing, and neither does the number of queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self, TypeAlias

from .arrays import text_array
from .transaction import Row, Transaction

STEP: Final = 1_000
"""How many jobs one transaction lets pass from one index to another because of a pause, at most."""

Lane: TypeAlias = tuple[str | None, str]


def served_arrays(queues: Sequence[str] | None, effects: Sequence[str] | None) -> dict[str, str | None]:
    """The queues and effects that are asked for, each once, as the statements take them; None means all."""
    return {
        "queues": None if queues is None else text_array(list(dict.fromkeys(queues))),
        "effects": None if effects is None else text_array(list(dict.fromkeys(effects))),
    }


class Lanes:
    """Lanes that were found, and the statements that read them."""

    def __init__(self, transaction: Transaction, found: Sequence[Lane], *, all_queues: bool) -> None:
        self.found = found
        self._transaction = transaction
        self._all_queues = all_queues

    def of(self, places: Sequence[int]) -> Self:
        """Some of the lanes, by their places."""
        found = [self.found[place] for place in places]
        return type(self)(self._transaction, found, all_queues=self._all_queues)

    @cached_property
    def arrays(self) -> dict[str, str | None]:
        """The lanes as the statements take them."""
        queues = [queue for queue, _ in self.found if queue is not None]
        return {
            "queues": None if self._all_queues else text_array(queues),
            "effects": text_array([effect for _, effect in self.found]),
        }

    def rows(self, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Run the statement of that name over the lanes; all of its rows."""
        return self._transaction.rows(self._form(name), self.arrays | dict(parameters))

    def change(self, name: str, parameters: Mapping[str, Any]) -> int:
        """Run a statement that changes rows of the lanes; how many it did change."""
        return self._transaction.change(self._form(name), self.arrays | dict(parameters))

    def _form(self, name: str) -> str:
        return f"{name}_all" if self._all_queues else name

    def return_passed_over(self) -> bool:
        """Return jobs of resumed queues to the indexes that claims read, one step; True if there were any."""
        resuming = self._transaction.rows("resuming", {"queues": self.arrays["queues"]})
        return any(give_back(self._transaction, queue) for (queue,) in resuming)

    def pass_over(self, limit: int) -> bool:
        """Take jobs of paused queues, which a claim of all meets first, out of its indexes; True if more may be left.

        A claim of named queues reads no lane of a paused one. What others move meanwhile is left where it is.
        """
        passed = 0
        stepping = {"limit": STEP, "window": max(STEP, limit), "effects": self.arrays["effects"]}
        while self._all_queues and passed < STEP:
            paused = self._transaction.rows("paused_ahead", stepping | {"limit": limit})
            queues = text_array([queue for (queue,) in paused])
            moved = self._transaction.change("pass_over", stepping | {"queues": queues}) if paused else 0
            if not moved:
                return False
            passed += moved
        return passed > 0


def give_back(transaction: Transaction, queue: str) -> bool:
    """Return jobs of a resumed queue to the indexes that claims read, one step; True if there were any."""
    if transaction.change("give_back", {"queue": queue, "limit": STEP}):
        return True
    transaction.change("forget_pause", {"queue": queue})
    return False
