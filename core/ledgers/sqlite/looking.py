"""What is read: jobs, pages, counts, inputs, the audit, and when a claim is next worth while."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ...errors import InvalidInput, LedgerCorrupt
from ...inputs import Input, is_name
from ...job import COMPLETED, QUEUED, STATES, Job, State
from ...ledger import AuditEntry, Page
from ..rows import job_of
from .claiming import lanes, open_lanes
from .transaction import Transaction


def read_inputs(transaction: Transaction, ids: Iterable[str]) -> dict[str, Input]:
    """The inputs that are there.

    Raises:
        LedgerCorrupt: the input of a job is missing.
    """
    wanted = [id for id in ids if is_name(id)]
    found = {id: Input(id, text) for id, text in transaction.rows("inputs", {"ids": json.dumps(wanted)})}
    missing = [id for id in wanted if id not in found]
    if missing:
        bare = transaction.value("job_without_input", {"ids": json.dumps(missing)})
        if bare is not None:
            raise LedgerCorrupt(
                f"{transaction.path}: the job {bare!r} has no input; restore the ledger from a back-up"
            )
    return found


def get_job(transaction: Transaction, id: str) -> Job | None:
    """The job under that id, wherever it is."""
    row = transaction.row("jobs_of", {"ids": json.dumps([id])})
    return None if row is None else job_of(row)


def jobs(
    transaction: Transaction,
    *,
    states: Sequence[State] | None = None,
    queue: str | None = None,
    effect: str | None = None,
    after: str | None,
    limit: int,
) -> Page:
    """A page in order of enqueue; the cursor is the key of its last job."""
    wanted = STATES if states is None else states
    found = transaction.rows(
        "keys",
        {
            "after": cursor_key(after),
            "scan": QUEUED in wanted or COMPLETED in wanted,
            "states": json.dumps(wanted),
            "queue": queue,
            "effect": effect,
            "limit": limit + 1,
        },
    )
    keys = [key for (key,) in found[:limit]]
    rows = transaction.rows("jobs_at", {"keys": json.dumps(keys)})
    return Page([job_of(row) for row in rows], str(keys[-1]) if len(found) > limit else None)


def cursor_key(cursor: str | None) -> int:
    """The key in a cursor; 0 for none.

    Raises:
        InvalidInput: it is no cursor of this ledger.
    """
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidInput(f"{cursor!r:.80} is no cursor: give the one that the page before returned")
    return int(cursor)


def counts(transaction: Transaction, queue: str | None) -> dict[State, int]:
    """A count for each state, 0 included."""
    found: dict[State, int] = dict.fromkeys(STATES, 0)
    found.update(transaction.rows("counts", {"queue": queue}))
    return found


def next_due_ms(
    transaction: Transaction, queues: Sequence[str] | None, effects: Sequence[str] | None
) -> int | None:
    """When a claim of these could next find something to settle or, in queues that are not paused, to pick."""
    served = lanes(transaction, queues, effects)
    bounds = {"lanes": json.dumps(served), "open_lanes": json.dumps(open_lanes(transaction, served))}
    due_ms: int | None = transaction.value("next_due", bounds)
    return due_ms


def audit(transaction: Transaction, id: str | None, limit: int) -> list[AuditEntry]:
    """The latest entries, oldest first."""
    if id is None:
        return [AuditEntry(*row) for row in transaction.rows("audit", {"limit": limit})]
    return [AuditEntry(*row) for row in transaction.rows("audit_of", {"id": id, "limit": limit})]
