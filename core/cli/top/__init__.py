"""``fencepost top``: watch a ledger live."""
