"""Moving a whole directory ledger to another kind, and another kind's rows in here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import IdentityConflict, InvalidInput, LimitExceeded
from ...model import job as moves
from ...model.documents import MAX_DOCUMENT_BYTES
from ...model.records import Export, Row
from ..closing import (
    COPY_BEGIN,
    COPY_END,
    SEAL,
    holds_something,
    live_lease,
)
from ..operator import Operator
from . import receipts as receipting
from .rows import Purged, encode, kept
from .store import Store
from .table import Table

RESERVE_BYTES: Final = 256 * 1024
"""What an enqueue leaves free of the largest document, so that later moves always fit."""
MOST_BYTES: Final = MAX_DOCUMENT_BYTES - RESERVE_BYTES


def seal(store: Store, table: Table, destination: str, *, actor: str | None, now_ms: int) -> None:
    """Record the seal in audit.jsonl, unless a lease is live."""
    closing = store.closing()
    if closing.sealed_for == destination:
        return
    closing.refuse(store.location)
    live = [
        job.id for job in table.jobs.values() if job.state == moves.RUNNING and not moves.lapsed(job, now_ms)
    ]
    if live:
        raise live_lease(store.location, live[0])
    store.record(Operator(actor, None).entry(SEAL, destination, now_ms))


def begin_copy(
    store: Store, table: Table, source: str, *, planned: Iterable[str], actor: str | None, now_ms: int
) -> bool:
    """Record in audit.jsonl that a copy comes, which closes the ledger; it must be empty. False: it comes already."""
    closing = store.closing()
    if closing.copying_from == source:
        return False
    closing.refuse(store.location)
    there = [*table.jobs, *table.purged, *_ids_without_job(store, table), *planned]
    if there:
        raise holds_something(store.location, there[0])
    store.record(Operator(actor, None).entry(COPY_BEGIN, source, now_ms))
    return True


def is_coming(store: Store, source: str) -> bool:
    """Whether the copy of that source is under way."""
    closing = store.closing()
    closing.refuse(store.location, even_copying=True)
    return closing.copying_from == source


def end_copy(store: Store, source: str, *, actor: str | None, now_ms: int) -> None:
    """Record the end, which lets work begin."""
    store.record(Operator(actor, None).entry(COPY_END, source, now_ms))


def export_rows(store: Store, table: Table, *, after: str | None, limit: int) -> Export:
    """Jobs in order of enqueue, then ids without a job; the cursor is a count."""
    if after is not None and not re.fullmatch("[0-9]{1,15}", after, re.ASCII):
        raise InvalidInput(f"{after!r:.40} is no cursor of this ledger: give what the page before returned")
    start = int(after or "0")
    ids = [*sorted(table.jobs, key=table.order_of), *sorted(table.purged, key=table.order_of)]
    ids += _ids_without_job(store, table)
    rows = [
        Row(id, table.jobs.get(id), table.purged.get(id), store.input(id), store.receipt(id))
        for id in ids[start : start + limit]
    ]
    return Export(rows, str(start + limit) if start + limit < len(ids) else None)


def _ids_without_job(store: Store, table: Table) -> list[str]:
    """Of inputs that wait for a job, and of receipts of neither, by name."""
    return sorted({*store.input_ids(), *store.receipt_ids()} - table.jobs.keys() - table.purged.keys())


def check_room(path: str, rows: Iterable[Row]) -> None:
    """Refuse rows that jobs.json could not carry; by its size with all of them in it."""
    size = 0
    for row in rows:
        if row.job is not None:
            size += len(encode(kept(row.job))) + 2
        elif row.purged_version is not None:
            size += len(encode(Purged(row.id, row.purged_version))) + 2
        if size > MOST_BYTES:
            raise LimitExceeded(
                f"{path}: a directory ledger carries {MOST_BYTES:,} bytes of jobs, and these are more; nothing was "
                "stored. Copy to an SQL ledger"
            )


def import_rows(store: Store, table: Table, rows: Sequence[Row]) -> int:
    """Inputs and receipts first, then the jobs, which the table's owner writes at once."""
    new = [row for row in rows if _is_new(store, table, row)]
    store.add_inputs([row.input for row in new if row.input is not None])
    for row in rows:
        if row.receipt is not None:
            receipting.publish(store, row.receipt)
    for row in new:
        if row.job is not None:
            table.add(row.job)
        elif row.purged_version is not None:
            table.add_purged(Purged(row.id, row.purged_version))
    if table.size > MOST_BYTES and table.changed:
        raise LimitExceeded(
            f"{store.path}: a directory ledger cannot hold so many jobs; copy to an SQL ledger"
        )
    return len(new)


def _is_new(store: Store, table: Table, row: Row) -> bool:
    stored = store.input(row.id)
    if stored is not None and row.input is not None and stored.text != row.input.text:
        raise _differs(f"{store.path}: the id {row.id!r} is bound to another text")
    receipt = store.receipt(row.id)
    if receipt is not None and (row.receipt is None or not receipt.same_as(row.receipt)):
        raise _differs(f"{store.path}: the receipt of {row.id!r} is there already, and differs")
    if row.job is None and row.purged_version is None:
        return stored is None
    known = table.jobs.get(row.id)
    if known is None and row.id not in table.purged:
        return True
    expected = None if row.job is None else kept(row.job)
    if known != expected or table.purged.get(row.id) != row.purged_version:
        raise _differs(f"{store.path}: the job {row.id!r} is there already, and differs")
    return False


def _differs(what: str) -> IdentityConflict:
    return IdentityConflict(f"{what}; copy into an empty ledger, or go on with a copy of the same source")
