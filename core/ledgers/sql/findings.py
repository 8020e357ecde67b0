"""What the doctor finds alike in both SQL ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..inspection import Finding

EXAMPLES: Final = 5


def schema_finding(names: Sequence[str], *, what: str) -> Finding:
    """Something that the migrations have made is not as they made it: a guard, or what keeps claims quick.

    ``what`` says what is compared: "missing", "missing or changed".
    """
    return Finding(
        "schema-differs",
        f"tables, indexes, triggers or functions of the schema that are {what}: without its triggers a ledger no "
        "longer keeps what is written once, without its indexes claims get slow",
        "find out who changed them; make them again as the program's migrations do, or restore a back-up",
        tuple(names[:EXAMPLES]),
        len(names),
    )
