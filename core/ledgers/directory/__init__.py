"""The directory ledger: plain files that a person can read."""

from .ledger import DirectoryLedger

__all__ = ["DirectoryLedger"]
