"""A whole ledger in: everything that is kept of each id, from rows that every kind of ledger has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...model.job import DEAD, Job
from ...model.records import Row
from ..rows import stamps_ms
from ..sql import transfer
from .receipts import publish
from .transaction import Transaction

_JOB_FIELDS: Final = [name for name in Job._fields if name not in ("stamps", "died_at_ms")]
_DEAD_FIELDS: Final = [name for name in Job._fields if name not in ("stamps", "state", "lease_until_ms")]


def import_rows(transaction: Transaction, rows: Sequence[Row]) -> int:
    """Store what is not there; compare what is.

    Raises:
        IdentityConflict: an id that is there is not the same in everything that is kept.
    """
    new = transfer.read_new_rows(transaction, rows)
    key: int = transaction.value("next_key")
    for place, row in enumerate(new):
        _add(transaction, row, key + place)
    return len(new)


def _add(transaction: Transaction, row: Row, key: int) -> None:
    if row.input is not None:
        transaction.change("add_input", (row.id, row.input.text))
    if row.receipt is not None:
        publish(transaction, row.receipt)
    if row.purged_version is not None:
        transaction.change("import_purged", (row.id, row.purged_version))
    if row.job is None:
        return
    names = _DEAD_FIELDS if row.job.state == DEAD else _JOB_FIELDS
    values: list[Any] = [getattr(row.job, name) for name in names]
    statement = "import_dead" if row.job.state == DEAD else "import_job"
    transaction.change(statement, (*values, *stamps_ms(row.job.stamps), key))
