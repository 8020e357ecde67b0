"""Enqueue: one path for requests that are all new, which is proved by counting, and one that looks closer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias

from ...errors import IdentityConflict, LedgerCorrupt
from ...model.inputs import NewJob
from ...model.job import NO_STAMPS
from ...model.records import Enqueued
from ..rows import stamps_ms
from .transaction import Transaction

_UNSET: Final = -1
"""Stands for NULL where a parameter is bound (see the statement add_job)."""

_FEWEST_ALIKE: Final = 8
"""From this many on, one statement for jobs that are alike is faster than one for each."""

_FIFTY: Final = 50
"""How many inputs the statement add_fifty_inputs takes."""

_Options: TypeAlias = tuple[Any, ...]


def enqueue(transaction: Transaction, jobs: Sequence[NewJob], now_ms: int) -> list[Enqueued]:
    """Store the jobs of a valid request, all or none.

    Raises:
        IdentityConflict: an id is bound to another text or effect.
        LedgerCorrupt: a job that is known has no input.
    """
    try:
        with transaction.savepoint():
            _add_new(transaction, jobs, now_ms)
    except _SomeKnown:
        return _add_unknown(transaction, jobs, now_ms)
    return [Enqueued(job.id, created=True) for job in jobs]


class _SomeKnown(Exception):
    """Not all of the ids were new."""


def _add_new(transaction: Transaction, jobs: Sequence[NewJob], now_ms: int) -> None:
    """Store jobs of which none is known: the number of rows that were inserted is the proof.

    An id without an input has neither died nor been purged, unless the ledger is corrupt: that is looked for.
    """
    if _add_inputs(transaction, jobs) != len(jobs):
        raise _SomeKnown
    key: int = transaction.value("next_key")
    ids = _json_ids(jobs)
    added = 0
    scattered: list[tuple[Any, ...]] = []
    for options, alike in _runs(jobs, now_ms):
        if len(alike) >= _FEWEST_ALIKE:
            some = ids if len(alike) == len(jobs) else _json_ids(alike)
            added += transaction.change("add_jobs_alike", (key, some, 0, *options))
        else:
            scattered += ((key + place, job.id, 0, *options) for place, job in enumerate(alike))
        key += len(alike)
    if scattered:
        added += transaction.change_many("add_job", scattered)
    if added != len(jobs):
        raise _SomeKnown
    if transaction.value("any_gone") and transaction.value("any_gone_of", {"ids": ids}):
        raise _SomeKnown


def _add_inputs(transaction: Transaction, jobs: Sequence[NewJob]) -> int:
    whole = len(jobs) - len(jobs) % _FIFTY
    added = 0
    for start in range(0, whole, _FIFTY):
        fifty = jobs[start : start + _FIFTY]
        added += transaction.change(
            "add_fifty_inputs", [part for job in fifty for part in (job.id, job.text)]
        )
    return added + transaction.change_many("add_input", [(job.id, job.text) for job in jobs[whole:]])


def _add_unknown(transaction: Transaction, jobs: Sequence[NewJob], now_ms: int) -> list[Enqueued]:
    """Compare each job with what is known of its id, then store those that are unknown."""
    known = {id: rest for id, *rest in transaction.rows("known", {"ids": _json_ids(jobs)})}
    for place, job in enumerate(jobs, 1):
        text, effect, purged_version = known[job.id]
        record = f"{transaction.location}: record {place} (id {job.id!r})"
        if text is None and (effect is not None or purged_version is not None):
            raise LedgerCorrupt(
                f"{record}: the job is there, but its input is missing; nothing was stored. Restore the ledger "
                "from a back-up"
            )
        if text is not None and text != job.text:
            raise IdentityConflict(
                f"{record}: the id is bound to another text; nothing was stored. Give the changed text an id of "
                "its own"
            )
        if effect is not None and effect != job.effect:
            raise IdentityConflict(
                f"{record}: the job has the effect {effect!r}, not {job.effect!r}; nothing was stored. Give a "
                "job of another effect an id of its own"
            )
    new = [job for job in jobs if known[job.id][1] is None]
    key: int = transaction.value("next_key")
    for place, job in enumerate(new):
        _, _, purged_version = known[job.id]
        version = 0 if purged_version is None else purged_version + 1
        transaction.change("add_input", (job.id, job.text))
        transaction.change("add_job", (key + place, job.id, version, *_options(job, now_ms)))
        if purged_version is not None:
            transaction.change("unpurge", {"id": job.id})
    return [Enqueued(job.id, created=known[job.id][1] is None) for job in jobs]


def _runs(jobs: Sequence[NewJob], now_ms: int) -> Iterator[tuple[_Options, list[NewJob]]]:
    """Neighbours that are alike in all but id and text: order of enqueue is the order of the request."""
    return ((options, list(run)) for options, run in groupby(jobs, lambda job: _options(job, now_ms)))


def _options(job: NewJob, now_ms: int) -> _Options:
    stamps: _Options = (_UNSET, _UNSET, _UNSET, _UNSET)
    if job.stamps is not NO_STAMPS:
        stamps = tuple(_UNSET if ms is None else ms for ms in stamps_ms(job.stamps))
    return (
        job.queue,
        job.effect,
        job.priority,
        _UNSET if job.run_at_ms is None else job.run_at_ms,
        _UNSET if job.expires_at_ms is None else job.expires_at_ms,
        now_ms,
        *stamps,
    )


def _json_ids(jobs: Sequence[NewJob]) -> str:
    return json.dumps([job.id for job in jobs])
