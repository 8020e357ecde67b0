"""A whole ledger out and in: everything that is kept of each id, as rows that every kind of ledger has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from ...errors import IdentityConflict, InvalidInput, LedgerBusy
from ...inputs import MAX_RECORDS, Input, is_name
from ...job import DEAD, Job
from ...ledger import Export, Row
from ...texts import storable
from ..rows import job_of, stamps_ms
from .arrays import bytea_array, int_array, text_array
from .database import sealed
from .looking import jobs as list_jobs
from .operating import Operator, record_seal
from .receipting import publish_all, receipts
from .transaction import Transaction

_OTHERS: Final = "others:"
"""Begins the cursor of the second part, ids without a job; the id that it goes on after follows."""

_JOB_FIELDS: Final = [field.name for field in fields(Job) if field.name != "stamps"]
_TEXT_FIELDS: Final = ("id", "state", "queue", "effect", "claimant", "last_error")
_STAMPS: Final = ("visibility_timeout_ms", "max_attempts", "backoff_base_ms", "dead_letter_retention_ms")


def seal(transaction: Transaction, destination: str, actor: str | None, now_ms: int) -> None:
    """Refuse all work from now on; see the protocol."""
    sealed_for = transaction.meta.sealed_for
    if sealed_for == destination:
        return
    if sealed_for is not None:
        raise sealed(transaction.address.location, sealed_for)
    live = transaction.value("live_leases", (now_ms,))
    if live is not None:
        raise LedgerBusy(
            f"{transaction.address.location}: jobs are running under live leases ({live!r} is one); stop the workers, "
            "or wait for the leases to end"
        )
    transaction.change("seal", (destination,))
    transaction.wakes = True
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
    new = 0
    for start in range(0, len(rows), MAX_RECORDS):
        new += _import(transaction, rows[start : start + MAX_RECORDS])
    if new:
        transaction.wakes = True
    return new


def _import(transaction: Transaction, rows: Sequence[Row]) -> int:
    ids = [row.id for row in rows]
    jobs = {row[0]: job_of(row) for row in transaction.rows("jobs_of", {"ids": text_array(ids)})}
    there = {row.id: row for row in _rows(transaction, {id: jobs.get(id) for id in ids})}
    new: list[Row] = []
    for row in rows:
        stored = there[row.id]
        if _same(stored, row):
            continue
        if stored != Row(row.id, None, None, None, None):
            raise IdentityConflict(
                f"{transaction.address.location}: {row.id!r} is there already, and is not what is to be copied; "
                "copy into an empty ledger, or go on with a copy of the same source"
            )
        new.append(row)
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


def _rows(transaction: Transaction, jobs: dict[str, Job | None]) -> list[Row]:
    """All that is kept of these ids, in their order."""
    ids = {"ids": text_array(list(jobs))}
    inputs = {id: text.decode() for id, text in transaction.rows("inputs", ids)}
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
