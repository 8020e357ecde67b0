"""Enqueue: each record compared with what is known of its id; inputs first, then the jobs."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import IdentityConflict, LimitExceeded
from ...model.inputs import Input, NewJob
from ...model.records import Enqueued
from .store import Store
from .table import Table
from .transfer import MOST_BYTES


def enqueue(store: Store, table: Table, request: Sequence[NewJob]) -> list[Enqueued]:
    """Store the jobs of a valid request, all or none; the table's owner writes it.

    A crash between inputs and jobs leaves inputs that the same request adopts.

    Raises:
        IdentityConflict: an id is bound to another text or effect.
        LimitExceeded: the file has no room for them.
        LedgerCorrupt: a job that is known has no input.
    """
    inputs: list[Input] = []
    answers = [_admit(store, table, job, inputs) for job in request]
    if table.size > MOST_BYTES and table.changed:
        raise LimitExceeded(
            f"{store.path}: {len(request):,} more jobs would fill jobs.json beyond {MOST_BYTES:,} bytes; nothing was "
            "stored. For more jobs use an SQL ledger (--store jobs.db): `fencepost copy` moves this one there"
        )
    if inputs:
        store.add_inputs(inputs)
    return answers


def _admit(store: Store, table: Table, job: NewJob, inputs: list[Input]) -> Enqueued:
    """Add the job to the table where its id is free, and its input to those that are to be stored."""
    known = table.jobs.get(job.id)
    stored = store.input(job.id)
    if stored is None:
        if known is not None or job.id in table.purged:
            store.missing_input(job.id)
        inputs.append(Input(job.id, job.text))
    elif stored.text != job.text:
        raise IdentityConflict(
            f"{store.path}: the id {job.id!r} is bound to another text; nothing was stored. Give the changed text an "
            "id of its own"
        )
    if known is not None:
        if known.effect != job.effect:
            raise IdentityConflict(
                f"{store.path}: the job {job.id!r} has the effect {known.effect!r}, not {job.effect!r}; nothing was "
                "stored. Give a job of another effect an id of its own"
            )
        return Enqueued(job.id, created=False)
    last = table.purged.get(job.id)
    table.add(job.queued(enqueued_at_ms=None, version=0 if last is None else last + 1))
    return Enqueued(job.id, created=True)
