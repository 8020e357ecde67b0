"""What every ledger says once it was copied to another one."""

from __future__ import annotations

from ..errors import LedgerSealed


def sealed(location: str, destination: str) -> LedgerSealed:
    """The error that names the ledger to use instead."""
    return LedgerSealed(f"{location}: this ledger was sealed for {destination}; use that one from now on")
