"""What the model keeps: dictionaries that several ``ModelLedger`` objects share, as connections share a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from ..errors import InvalidInput
from ..ledgers.closing import Closing
from ..model.inputs import Input
from ..model.job import DEFAULT_EFFECT, Job
from ..model.receipts import Receipt
from ..model.records import (
    AuditEntry,
    Capabilities,
    Row,
    Schedule,
)
from ..model.texts import storable

KEEPS_ALL: Final = Capabilities(
    has_schedules=True,
    can_join_transaction=False,
    keeps_enqueue_time=True,
    keeps_claim_details=True,
    has_line_enqueue=False,
)
KEEPS_LITTLE: Final = replace(
    KEEPS_ALL, has_schedules=False, keeps_enqueue_time=False, keeps_claim_details=False
)
"""The fewest capabilities that a ledger may have."""


def as_kept(job: Job, capabilities: Capabilities) -> Job:
    """The job as a ledger with these capabilities stores it: what it does not keep is None."""
    if not capabilities.keeps_enqueue_time:
        job = job._replace(enqueued_at_ms=None)
    if not capabilities.keeps_claim_details:
        job = job._replace(claimant=None, claimed_at_ms=None, completed_at_ms=None)
        if job.effect == DEFAULT_EFFECT:
            job = job._replace(first_claimed_at_ms=None)
    error = None if job.last_error is None else storable(job.last_error)
    return job._replace(stamps=job.stamps.whole(), last_error=error)


def same_row(one: Row, other: Row) -> bool:
    """Equal in all that is kept; receipts by the rule for receipts."""
    if one.receipt is None or other.receipt is None:
        return one == other
    return one.receipt.same_as(other.receipt) and replace(one, receipt=None) == replace(other, receipt=None)


def place_of(cursor: str | None) -> int:
    """The number in a cursor: how far the page before it reached."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise InvalidInput(
            f"{cursor!r} is no cursor of this ledger: give the one that the page before returned"
        )
    return int(cursor)


@dataclass
class ModelStore:
    """One store; ``changed`` is its lock, and wakes whoever waits for a commit."""

    jobs: dict[str, Job] = field(default_factory=dict)
    """In order of enqueue, which is how a dictionary keeps what is put into it."""
    places: dict[str, int] = field(default_factory=dict)
    """The number of each job in that order; one that was purged and made again gets a new one."""
    purged: dict[str, int] = field(default_factory=dict)
    """The last version of each purged id."""
    inputs: dict[str, Input] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    closing: Closing = field(default_factory=Closing)
    commits: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def writing(self, *, even_copying: bool = False) -> Iterator[None]:
        """One atomic step, which a seal forbids, and a copy that has not ended."""
        with self.changed:
            self.closing.refuse("this model", even_copying=even_copying)
            yield

    def put(self, job: Job, capabilities: Capabilities) -> Job:
        """Store the job, at the end if it is new."""
        if job.id not in self.places:
            self.places[job.id] = max(self.places.values(), default=0) + 1
        self.jobs[job.id] = as_kept(job, capabilities)
        self.committed()
        return self.jobs[job.id]

    def forget(self, job: Job) -> None:
        """Purge the job; its input stays, and its last version."""
        del self.jobs[job.id], self.places[job.id]
        self.purged[job.id] = job.version
        self.committed()

    def row(self, id: str) -> Row:
        """All that is kept of one id."""
        return Row(id, self.jobs.get(id), self.purged.get(id), self.inputs.get(id), self.receipts.get(id))

    def committed(self) -> None:
        """Wake those who wait."""
        self.commits += 1
        self.changed.notify_all()
