"""The SQLite ledger: millions of jobs in one file, for workers on one machine; see contract §6."""

from .ledger import SqliteLedger

__all__ = ["SqliteLedger"]
