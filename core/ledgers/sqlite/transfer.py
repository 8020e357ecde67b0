"""A whole ledger out and in: everything that is kept of each id, as rows that every kind of ledger has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from ...errors import IdentityConflict, InvalidInput, LedgerBusy
from ...inputs import Input, is_name
from ...job import DEAD, Job
from ...ledger import Export, Row
from ..rows import job_of, stamps_ms
from .database import refuse_sealed
from .looking import jobs as list_jobs
from .operating import Operator, record_seal
from .receipting import publish, receipts
from .transaction import Transaction

_OTHERS: Final = "others:"
"""Begins the cursor of the second part, ids without a job; the id that it goes on after follows."""

_JOB_FIELDS: Final = [field.name for field in fields(Job) if field.name not in ("stamps", "died_at_ms")]
_DEAD_FIELDS: Final = [
    field.name for field in fields(Job) if field.name not in ("stamps", "state", "lease_until_ms")
]


def seal(transaction: Transaction, destination: str, actor: str | None, now_ms: int) -> None:
    """Refuse all work from now on; see the protocol."""
    sealed_for = transaction.value("sealed_for")
    if sealed_for == destination:
        return
    refuse_sealed(transaction)
    live = transaction.value("live_leases", (now_ms,))
    if live is not None:
        raise LedgerBusy(
            f"{transaction.path}: jobs are running under live leases ({live!r} is one); stop the workers, or wait "
            "for the leases to end"
        )
    transaction.change("seal", (destination,))
    record_seal(transaction, destination, Operator(actor, None, now_ms))


def export_rows(transaction: Transaction, after: str | None, limit: int) -> Export:
    """Jobs in order of enqueue, dead ones in their places; then the ids without a job, by id."""
    jobs: dict[str, Job | None] = {}
    other = ""
    if after is not None and after.startswith(_OTHERS):
        other = after.removeprefix(_OTHERS)
        if other and not is_name(other):
            raise InvalidInput(f"{after!r:.80} is no cursor: give the one that the page before returned")
    else:
        page = list_jobs(transaction, after=after, limit=limit)
        jobs = {job.id: job for job in page.jobs}
        if page.next is not None:
            return Export(_rows(transaction, jobs), page.next)
    room = limit - len(jobs)
    others = [id for (id,) in transaction.rows("others", {"after": other, "limit": room + 1})]
    rows = _rows(transaction, jobs | dict.fromkeys(others[:room]))
    if len(others) > room:
        return Export(rows, _OTHERS + (others[room - 1] if room else other))
    return Export(rows, None)


def import_rows(transaction: Transaction, rows: Sequence[Row]) -> int:
    """Store what is not there; compare what is.

    Raises:
        IdentityConflict: an id that is there is not the same in everything that is kept.
    """
    ids = [row.id for row in rows]
    jobs = {row[0]: job_of(row) for row in transaction.rows("jobs_of", {"ids": json.dumps(ids)})}
    there = {row.id: row for row in _rows(transaction, {id: jobs.get(id) for id in ids})}
    key: int = transaction.value("next_key")
    new = 0
    for row in rows:
        stored = there[row.id]
        if _same(stored, row):
            continue
        if stored != Row(row.id, None, None, None, None):
            raise IdentityConflict(
                f"{transaction.path}: {row.id!r} is there already, and is not what is to be copied; copy into an "
                "empty ledger, or go on with a copy of the same source"
            )
        _add(transaction, row, key + new)
        new += 1
    return new


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


def _rows(transaction: Transaction, jobs: dict[str, Job | None]) -> list[Row]:
    """All that is kept of these ids, in their order."""
    ids = {"ids": json.dumps(list(jobs))}
    inputs: dict[str, str] = dict(transaction.rows("inputs", ids))
    stored = receipts(transaction, jobs)
    purged: dict[str, int] = dict(transaction.rows("purged_of", ids))
    return [
        Row(id, job, purged.get(id), Input(id, inputs[id]) if id in inputs else None, stored.get(id))
        for id, job in jobs.items()
    ]


def _same(one: Row, other: Row) -> bool:
    if (one.job, one.purged_version, one.input) != (other.job, other.purged_version, other.input):
        return False
    if one.receipt is None or other.receipt is None:
        return one.receipt is other.receipt
    return one.receipt.same_as(other.receipt)
