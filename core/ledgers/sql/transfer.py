"""A whole ledger out and in: the seal, the order of pages, and when a row that is there already is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ...errors import IdentityConflict, InvalidInput
from ...model.inputs import Input, is_name
from ...model.job import Job
from ...model.query import JobQuery
from ...model.records import Export, Page, Row
from ..closing import Closing, holds_something, live_lease
from ..rows import job_of
from .reads import text_of
from .receipts import receipts
from .transaction import Transaction

_OTHERS: Final = "others:"
"""Begins the cursor of the second part, ids without a job; the id that it goes on after follows."""

ListJobs: TypeAlias = Callable[[JobQuery], Page]
"""A page of jobs, in the same transaction."""


def closing(transaction: Transaction) -> Closing:
    """What closes the ledger."""
    return Closing(*transaction.rows("closing")[0])


def begin_copy(transaction: Transaction, location: str, source: str) -> bool:
    """Refuse all work until the copy has ended; False: it has begun already.

    Raises:
        IdentityConflict: the ledger holds something.
        LedgerSealed: it was copied on, or waits for another copy.
    """
    closed = closing(transaction)
    if closed.copying_from == source:
        return False
    closed.refuse(location)
    there = transaction.value("anything")
    if there is not None:
        raise holds_something(location, there)
    transaction.change("set_copying", (source,))
    return True


def require_copy(transaction: Transaction, location: str, source: str | None) -> None:
    """Refuse a row of a copy that is not under way; see ``Closing.require_copy``."""
    if source is not None:
        closing(transaction).require_copy(location, source)


def end_copy(transaction: Transaction, source: str) -> bool:
    """Let work begin; False: that copy is not under way."""
    if closing(transaction).copying_from != source:
        return False
    transaction.change("set_copying", (None,))
    return True


def seal(transaction: Transaction, location: str, destination: str, now_ms: int) -> bool:
    """Refuse all work from now on; False: it is sealed for that destination already.

    Raises:
        LedgerBusy: a lease is live.
        LedgerSealed: sealed already for another destination, or itself a copy that has not ended.
    """
    closed = closing(transaction)
    if closed.sealed_for == destination:
        return False
    closed.refuse(location)
    live = transaction.value("live_leases", (now_ms,))
    if live is not None:
        raise live_lease(location, live)
    transaction.change("seal", (destination,))
    return True


def export_rows(transaction: Transaction, after: str | None, limit: int, list_jobs: ListJobs) -> Export:
    """Jobs in order of enqueue, dead ones in their places; then the ids without a job, by id."""
    jobs: dict[str, Job | None] = {}
    other = ""
    if after is not None and after.startswith(_OTHERS):
        other = after.removeprefix(_OTHERS)
        if other and not is_name(other):
            raise InvalidInput(f"{after!r:.80} is no cursor: give the one that the page before returned")
    else:
        page = list_jobs(JobQuery(after=after, limit=limit))
        jobs = {job.id: job for job in page.jobs}
        if page.next is not None:
            return Export(read_rows(transaction, jobs), page.next)
    room = limit - len(jobs)
    others = [id for (id,) in transaction.rows("others", {"after": other, "limit": room + 1})]
    rows = read_rows(transaction, jobs | dict.fromkeys(others[:room]))
    if len(others) > room:
        return Export(rows, _OTHERS + (others[room - 1] if room else other))
    return Export(rows, None)


def read_rows(transaction: Transaction, jobs: Mapping[str, Job | None]) -> list[Row]:
    """All that is kept of these ids, in their order; ``jobs`` are the jobs that they have."""
    ids = {"ids": transaction.names(jobs)}
    inputs = {id: Input(id, text_of(text)) for id, text in transaction.rows("inputs", ids)}
    stored = receipts(transaction, jobs)
    purged: dict[str, int] = dict(transaction.rows("purged_of", ids))
    return [Row(id, job, purged.get(id), inputs.get(id), stored.get(id)) for id, job in jobs.items()]


def read_new_rows(transaction: Transaction, rows: Sequence[Row]) -> list[Row]:
    """Those of the rows of which nothing is there.

    Raises:
        IdentityConflict: an id that is there is not the same in everything that is kept.
    """
    ids = [row.id for row in rows]
    found = {row[0]: job_of(row) for row in transaction.rows("jobs_of", {"ids": transaction.names(ids)})}
    there = read_rows(transaction, {id: found.get(id) for id in ids})
    return _new_rows(transaction.location, rows, there)


def _new_rows(location: str, rows: Sequence[Row], there: Sequence[Row]) -> list[Row]:
    """The rows of which nothing is there; ``there`` is what is kept of their ids, in the same order.

    Raises:
        IdentityConflict: an id that is there is not the same in everything that is kept.
    """
    new = []
    for row, stored in zip(rows, there, strict=True):
        if _same(stored, row):
            continue
        if stored != Row(row.id, None, None, None, None):
            raise IdentityConflict(
                f"{location}: {row.id!r} is there already, and is not what is to be copied; copy into an empty "
                "ledger, or go on with a copy of the same source"
            )
        new.append(row)
    return new


def _same(one: Row, other: Row) -> bool:
    if (one.job, one.purged_version, one.input) != (other.job, other.purged_version, other.input):
        return False
    if one.receipt is None or other.receipt is None:
        return one.receipt is other.receipt
    return one.receipt.same_as(other.receipt)
