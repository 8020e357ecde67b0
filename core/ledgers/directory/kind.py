"""The directory ledger as a kind: what a store's name means, and what opens it."""

from __future__ import annotations

import os
from typing import Final

from ...model.clock import Clock
from ..names import path_of
from ..paths import check_path
from .inspection import DirectoryInspection
from .ledger import DirectoryLedger


class DirectoryKind:
    """See ``kinds.KindOfLedger``; an address is a path."""

    capabilities: Final = DirectoryLedger.capabilities

    def address(self, rest: str) -> str:
        """The path."""
        return path_of(rest)

    def open(self, address: str, *, clock: Clock) -> DirectoryLedger:
        """Open the ledger in that folder, and make both where they are absent."""
        check_path(address)
        return DirectoryLedger(address, clock=clock)

    def inspect(self, address: str, *, clock: Clock) -> DirectoryInspection:
        """Open it for a look."""
        check_path(address)
        return DirectoryInspection(address, clock=clock)

    def exists(self, address: str) -> bool:
        """Whether the folder holds one of the two files that make it a ledger, or the name means something else."""
        if os.path.isdir(address):
            return any(os.path.lexists(os.path.join(address, name)) for name in ("ledger.lock", "jobs.json"))
        return os.path.lexists(address)
