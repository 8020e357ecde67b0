"""Jobs in PostgreSQL: one ledger for workers on many machines."""

from .ledger import PostgresLedger

__all__ = ["PostgresLedger"]
