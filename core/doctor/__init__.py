"""The checks of ``fencepost doctor``: pure rules over what an ``Inspection`` of a ledger sees."""
