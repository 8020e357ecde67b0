"""What an engine does by statements of its own: functions that know nothing of when a transaction begins or ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from ...model.inputs import NewJob
from ...model.job import Job, State
from ...model.query import JobQuery
from ...model.receipts import Published, Receipt
from ...model.records import Enqueued, Page, Row
from .transaction import AnyTransaction

Place: TypeAlias = Any
"""How an engine's statements name the row of a job: SQLite by its key, PostgreSQL by its id."""


@dataclass(frozen=True, slots=True)
class Engine(Generic[AnyTransaction]):
    """The functions of one engine, each within an open transaction."""

    enqueue: Callable[[AnyTransaction, Sequence[NewJob], int], list[Enqueued]]
    publish: Callable[[AnyTransaction, Receipt], Published]
    complete: Callable[[AnyTransaction, str, int, int], bool]

    find: Callable[[AnyTransaction, str], tuple[Place, Job] | None]
    """The job, live or dead; nobody else moves it until the transaction ends."""
    bury: Callable[[AnyTransaction, Sequence[Place], str, int, bool], None]
    """The error and the instant; True: nothing was done, and their starts are forgotten."""
    revive: Callable[[AnyTransaction, Place, Job], None]
    purge: Callable[[AnyTransaction, Sequence[Place]], None]
    purgeable: Callable[[AnyTransaction, str | None, int, int], Sequence[Place]]
    """Dead jobs of a queue, or of all, whose retention has ended, up to the limit."""
    expired: Callable[[AnyTransaction, str | None, int, int], Sequence[Place]]
    """Live jobs of a queue, or of all, whose expiry has passed, up to the limit."""
    give_back: Callable[[AnyTransaction, str], bool]
    """Return jobs that claims passed over while the queue was paused, one step; True if there were any."""

    jobs: Callable[[AnyTransaction, JobQuery], Page]
    counts: Callable[[AnyTransaction, str | None], dict[State, int]]
    next_due_ms: Callable[[AnyTransaction, Sequence[str] | None, Sequence[str] | None], int | None]
    import_rows: Callable[[AnyTransaction, Sequence[Row]], int]
