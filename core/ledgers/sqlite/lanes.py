"""The lanes of a claim: which part of each index on its path it reads.

A lane is a queue and an effect where the queues are named, and an effect where all queues are served. For both there
are indexes, so that jobs of other queues and effects cost nothing, and neither does the number of queues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .arrays import text_array
from .transaction import Row, Transaction

STEP: Final = 1_000
"""How many jobs one transaction lets pass from one index to another because of a pause, at most."""

_ALL_QUEUES: Final = json.dumps([None])


class Lanes:
    """The lanes of these queues and effects, and the statements that read them; None means all."""

    def __init__(
        self, transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
    ) -> None:
        self._transaction = transaction
        self._queues = None if queues is None else text_array(_names(queues))
        self._suffix = "_all" if queues is None else ""
        self._found = self._find(None if queues is None else _names(queues), effects)
        self._lanes = self._open_lanes = json.dumps(self._found)
        self._any_paused = bool(transaction.value("pauses"))
        if self._any_paused and queues is not None:
            paused = {queue for (queue,) in transaction.rows("pauses_of", {"queues": self._queues})}
            self._open_lanes = json.dumps([lane for lane in self._found if lane[0] not in paused])

    def _find(
        self, queues: Sequence[str] | None, effects: Sequence[str] | None
    ) -> Sequence[tuple[str | None, str]]:
        if effects is None:
            return self._transaction.rows("lanes" + self._suffix, {"queues": self._queues or _ALL_QUEUES})
        named: Sequence[str | None] = [None] if queues is None else queues
        return [(queue, effect) for queue in named for effect in _names(effects)]

    def rows(self, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Run the statement of that name over the lanes; all of its rows."""
        return self._transaction.rows(name + self._suffix, self._parameters(parameters))

    def change(self, name: str, parameters: Mapping[str, Any]) -> int:
        """Run a statement that changes rows of the lanes; how many it did change."""
        return self._transaction.change(name + self._suffix, self._parameters(parameters))

    def _parameters(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"lanes": self._lanes, "open_lanes": self._open_lanes, "any_paused": self._any_paused} | dict(
            parameters
        )

    def resuming(self) -> list[str]:
        """The queues that are not paused any more, but have jobs that were passed over."""
        if not self._any_paused:
            return []
        return [queue for (queue,) in self._transaction.rows("resuming", {"queues": self._queues})]

    def return_passed_over(self) -> bool:
        """Return jobs of resumed queues to the indexes that claims read, one step; True if there were any."""
        return any(give_back(self._transaction, queue) for queue in self.resuming())

    def pass_over(self, limit: int) -> bool:
        """Take jobs of paused queues, which a claim of all meets first, out of its indexes; True if more may be left.

        A claim of named queues reads no lane of a paused one.
        """
        if not self._any_paused or not self._suffix:
            return False
        passed = 0
        stepping = {"lanes": self._lanes, "limit": STEP, "window": max(STEP, limit)}
        while self._transaction.value("paused_ahead", {"lanes": self._lanes, "limit": limit}):
            passed += self._transaction.change("pass_over", stepping)
            if passed >= STEP:
                return True
        return False


def give_back(transaction: Transaction, queue: str) -> bool:
    """Return jobs of a resumed queue to the indexes that claims read, one step; True if there were any."""
    if transaction.change("give_back", {"queue": queue, "limit": STEP}):
        return True
    transaction.change("forget_pause", {"queue": queue})
    return False


def _names(given: Sequence[str]) -> list[str]:
    """Each once; nothing has a name with a NUL, and SQLite's JSON would end it there."""
    return [name for name in dict.fromkeys(given) if "\0" not in name]
