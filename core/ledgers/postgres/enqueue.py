"""Enqueue: one path for requests that are all new, which is proved by counting, and one that looks closer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, Final, TypeAlias

from ...errors import IdentityConflict, LedgerBusy, LedgerCorrupt
from ...model.inputs import NewJob
from ...model.job import NO_STAMPS
from ...model.records import Enqueued
from ..rows import stamps_ms
from .arrays import bytea_array, int_array, text_array
from .transaction import Transaction

_FEWEST_ALIKE: Final = 8
"""From this many on, a statement for jobs that are alike is faster than arrays of all that they could differ in."""

_MAX_BYTES: Final = 16_000_000
"""How many bytes of texts one statement carries, give or take one text."""

_OPTIONS: Final = (
    "priority",
    "run_at_ms",
    "expires_at_ms",
    "visibility_timeout_ms",
    "max_attempts",
    "backoff_base_ms",
    "dead_letter_retention_ms",
)
_Options: TypeAlias = tuple[Any, ...]
"""Queue, effect, and what ``_OPTIONS`` names."""
_Placed: TypeAlias = tuple[int, NewJob]
"""A job and its place in the request."""


def enqueue(transaction: Transaction, jobs: Sequence[NewJob], now_ms: int) -> list[Enqueued]:
    """Store the jobs of a valid request, all or none.

    Raises:
        IdentityConflict: an id is bound to another text or effect.
        LedgerCorrupt: a job that is known has no input.
    """
    placed = list(enumerate(jobs))
    bound, key, any_dead = _add_inputs(transaction, jobs)
    # An id without an input has no job, and was never purged: where all were bound only now, all are new.
    if len(bound) == len(jobs) and not any_dead and _add_new(transaction, placed, key, now_ms):
        created = bound
    else:
        created = _add_unknown(transaction, placed, bound, key, now_ms)
    if created:
        transaction.wake()
    return [Enqueued(job.id, created=job.id in created) for job in jobs]


def _add_inputs(transaction: Transaction, jobs: Sequence[NewJob]) -> tuple[set[str], int, bool]:
    """Bind the ids that are free: which they were, the key before the request's, whether any has a dead job."""
    bound: set[str] = set()
    key, any_dead = 0, False
    for part in _parts([(job.id, job.text.encode()) for job in jobs]):
        ids = [id for id, _ in part]
        new = {"ids": text_array(ids), "texts": bytea_array([text for _, text in part])}
        ((_, some, key, dead),) = transaction.rows("add_inputs", new)
        bound.update(ids if some is None else some)
        any_dead |= dead
    return bound, key, any_dead


def _parts(inputs: list[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """The inputs, divided where one statement would be too large; in the order of ids over all parts."""
    if sum(len(text) for _, text in inputs) <= _MAX_BYTES:
        yield inputs
        return
    inputs.sort()
    sizes = accumulate(len(text) for _, text in inputs)
    for _, part in groupby(zip(sizes, inputs, strict=True), lambda sized: sized[0] // _MAX_BYTES):
        yield [one for _, one in part]


def _add_new(transaction: Transaction, placed: Sequence[_Placed], key: int, now_ms: int) -> bool:
    """Add jobs of which none is known; False: one was."""
    added = 0
    scattered: list[tuple[_Placed, _Options]] = []
    for options, run in groupby(placed, lambda one: _options(one[1])):
        alike = list(run)
        if len(alike) < _FEWEST_ALIKE:
            scattered += ((one, options) for one in alike)
            continue
        queue, effect, *rest = options
        added += transaction.value(
            "add_jobs_alike",
            {
                "key": key + alike[0][0],
                "now_ms": now_ms,
                "ids": text_array([job.id for _, job in alike]),
                "queue": queue,
                "effect": effect,
                **dict(zip(_OPTIONS, rest, strict=True)),
            },
        )
    return added + _add_scattered(transaction, scattered, key, now_ms) == len(placed)


def _add_scattered(
    transaction: Transaction, jobs: Sequence[tuple[_Placed, _Options]], key: int, now_ms: int
) -> int:
    if not jobs:
        return 0
    queues, effects, *rest = zip(*(options for _, options in jobs), strict=True)
    added: int = transaction.value(
        "add_jobs",
        {
            "key": key,
            "now_ms": now_ms,
            "places": int_array([place for (place, _), _ in jobs]),
            "ids": text_array([job.id for (_, job), _ in jobs]),
            "queue": text_array(queues),
            "effect": text_array(effects),
            **{name: int_array(values) for name, values in zip(_OPTIONS, rest, strict=True)},
        },
    )
    return added


def _add_unknown(
    transaction: Transaction, placed: Sequence[_Placed], bound: set[str], key: int, now_ms: int
) -> set[str]:
    """Compare each job with what is known of its id, and add those that are unknown; which these are."""
    ids = text_array([job.id for _, job in placed])
    keys = range(key, key + len(placed) + 1)
    while True:
        known = {id: rest for id, *rest in transaction.rows("known", {"ids": ids})}
        created: set[str] = set()
        missing: list[_Placed] = []
        for place, job in placed:
            digest, live_key, live_effect, dead_effect, was_purged = known[job.id]
            record = f"{transaction.address.location}: record {place + 1} (id {job.id!r})"
            mine = live_key in keys
            effect = dead_effect if mine else live_effect or dead_effect
            if job.id in bound and (effect or was_purged):
                raise LedgerCorrupt(
                    f"{record}: the job is there, but its input is missing; nothing was stored. Restore the ledger "
                    "from a back-up"
                )
            if digest != hashlib.sha256(job.text.encode()).digest():
                raise IdentityConflict(
                    f"{record}: the id is bound to another text; nothing was stored. Give the changed text an id of "
                    "its own"
                )
            if effect and effect != job.effect:
                raise IdentityConflict(
                    f"{record}: the job has the effect {effect!r}, not {job.effect!r}; nothing was stored. Give "
                    "a job of another effect an id of its own"
                )
            if mine and dead_effect:
                raise LedgerBusy(f"{record}: another program made this job, too, just now; try again")
            if mine:
                created.add(job.id)
            elif effect is None:
                missing.append((place, job))
        if not missing:
            purged = [id for id in sorted(created) if known[id][-1]]
            if purged:
                transaction.change("unpurge", {"ids": text_array(purged)})
            return created
        # Where no input was bound, these rows are what requests with the same ids meet in: in the order of ids.
        missing.sort(key=lambda one: one[1].id)
        _add_scattered(transaction, [(one, _options(one[1])) for one in missing], key, now_ms)


def _options(job: NewJob) -> _Options:
    stamps: _Options = (None, None, None, None) if job.stamps is NO_STAMPS else stamps_ms(job.stamps)
    return job.queue, job.effect, job.priority, job.run_at_ms, job.expires_at_ms, *stamps
