"""A whole ledger in: everything that is kept of each id, from rows that every kind of ledger has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...model.inputs import MAX_RECORDS
from ...model.job import DEAD, Job
from ...model.records import Row
from ...model.texts import storable
from ..rows import stamps_ms
from ..sql import transfer
from .arrays import bytea_array, int_array, text_array
from .receipts import publish_all
from .transaction import Transaction

_JOB_FIELDS: Final = [name for name in Job._fields if name != "stamps"]
_TEXT_FIELDS: Final = ("id", "state", "queue", "effect", "claimant", "last_error")
_STAMPS: Final = ("visibility_timeout_ms", "max_attempts", "backoff_base_ms", "dead_letter_retention_ms")


def import_rows(transaction: Transaction, rows: Sequence[Row]) -> int:
    """Store what is not there; compare what is.

    Raises:
        IdentityConflict: an id that is there is not the same in everything that is kept.
    """
    new = 0
    for start in range(0, len(rows), MAX_RECORDS):
        new += _import(transaction, rows[start : start + MAX_RECORDS])
    if new:
        transaction.wake()
    return new


def _import(transaction: Transaction, rows: Sequence[Row]) -> int:
    new = transfer.read_new_rows(transaction, rows)
    inputs = [row.input for row in new if row.input is not None]
    transaction.rows(
        "add_inputs",
        {
            "ids": text_array([input.id for input in inputs]),
            "texts": bytea_array([input.text.encode() for input in inputs]),
        },
    )
    publish_all(transaction, [row.receipt for row in new if row.receipt is not None])
    purged = [(row.id, row.purged_version) for row in new if row.purged_version is not None]
    transaction.change(
        "import_purged",
        {
            "ids": text_array([id for id, _ in purged]),
            "versions": int_array([version for _, version in purged]),
        },
    )
    live = [
        (place, row.job) for place, row in enumerate(new) if row.job is not None and row.job.state != DEAD
    ]
    dead = [
        (place, row.job) for place, row in enumerate(new) if row.job is not None and row.job.state == DEAD
    ]
    key: int = transaction.value("next_key")
    for statement, some in (("import_jobs", live), ("import_dead", dead)):
        transaction.change(statement, {"key": key} | _columns(some))
    return len(new)


def _columns(placed: Sequence[tuple[int, Job]]) -> dict[str, str]:
    """The jobs, column by column, as arrays."""
    jobs = [job for _, job in placed]
    columns = {"place": int_array([place for place, _ in placed])}
    for name in _JOB_FIELDS:
        values = [getattr(job, name) for job in jobs]
        if name in _TEXT_FIELDS:
            columns[name] = text_array([None if value is None else storable(value) for value in values])
        else:
            columns[name] = int_array(values)
    stamps = [stamps_ms(job.stamps) for job in jobs]
    for place, name in enumerate(_STAMPS):
        columns[name] = int_array([each[place] for each in stamps])
    return columns
