"""The PostgreSQL ledger as a kind: what a store's name means, and what opens it."""

from __future__ import annotations

from typing import Final

from ...model.clock import Clock
from .address import check_url
from .inspection import PostgresInspection, is_there
from .ledger import PostgresLedger


class PostgresKind:
    """See ``kinds.KindOfLedger``; an address is a URL."""

    capabilities: Final = PostgresLedger.capabilities

    def address(self, rest: str) -> str:
        """The URL, which may hold a password."""
        return check_url(f"postgresql:{rest}")

    def open(self, address: str, *, clock: Clock) -> PostgresLedger:
        """Connect when it is first needed; the database's clock counts, whatever ``clock`` says."""
        return PostgresLedger(address)

    def inspect(self, address: str, *, clock: Clock) -> PostgresInspection:
        """Open it for a look."""
        return PostgresInspection(address)

    def exists(self, address: str) -> bool:
        """Whether the database has the tables of a ledger."""
        return is_there(address)
