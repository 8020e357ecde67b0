"""A whole ledger out and in: everything that is kept of each id, as rows that every kind of ledger has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...model.inputs import Input
from ...model.job import DEAD, Job
from ...model.query import JobQuery
from ...model.records import Export, Row
from ..rows import job_of, stamps_ms
from ..sql import transfer
from .reads import jobs
from .receipts import publish, receipts
from .transaction import Transaction

_JOB_FIELDS: Final = [name for name in Job._fields if name not in ("stamps", "died_at_ms")]
_DEAD_FIELDS: Final = [name for name in Job._fields if name not in ("stamps", "state", "lease_until_ms")]


def export_rows(transaction: Transaction, after: str | None, limit: int) -> Export:
    """A page of everything that is kept; see ``sql.transfer``."""
    return transfer.export_rows(
        transaction,
        after,
        limit,
        list_jobs=lambda after, limit: jobs(transaction, JobQuery(after=after, limit=limit)),
        read_rows=lambda jobs: _rows(transaction, jobs),
    )


def import_rows(transaction: Transaction, rows: Sequence[Row]) -> int:
    """Store what is not there; compare what is.

    Raises:
        IdentityConflict: an id that is there is not the same in everything that is kept.
    """
    ids = [row.id for row in rows]
    found = {row[0]: job_of(row) for row in transaction.rows("jobs_of", {"ids": json.dumps(ids)})}
    there = _rows(transaction, {id: found.get(id) for id in ids})
    key: int = transaction.value("next_key")
    new = transfer.new_rows(transaction.path, rows, there)
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


def _rows(transaction: Transaction, jobs: Mapping[str, Job | None]) -> list[Row]:
    """All that is kept of these ids, in their order."""
    ids = {"ids": json.dumps(list(jobs))}
    inputs: dict[str, str] = dict(transaction.rows("inputs", ids))
    stored = receipts(transaction, jobs)
    purged: dict[str, int] = dict(transaction.rows("purged_of", ids))
    return [
        Row(id, job, purged.get(id), Input(id, inputs[id]) if id in inputs else None, stored.get(id))
        for id, job in jobs.items()
    ]
