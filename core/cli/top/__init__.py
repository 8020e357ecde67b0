"""``fencepost top``: a ledger at work, live."""
