"""What the ledger's verbs take and answer with, beside jobs, inputs and receipts.

What a verb only answers with is a named tuple, not a dataclass: its class is made in a fifth of the time, which every
command waits for when it starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .inputs import Input
from .job import DEFAULT_EFFECT, DEFAULT_QUEUE, NO_STAMPS, Job, Stamps
from .receipts import Receipt


@dataclass(frozen=True, slots=True)
class Capabilities:
    """In what kinds of ledgers differ; everything else is the same for all of them."""

    has_schedules: bool
    """Schedules and pauses."""
    can_join_transaction: bool
    """``enqueue(connection=)`` joins the caller's own transaction."""
    keeps_enqueue_time: bool
    """Without it the time of enqueue counts as 0 in the order of claims."""
    keeps_claim_details: bool
    """Claimant, claimed_at and completed_at, and first_claimed_at of jobs of the default effect."""
    has_line_enqueue: bool
    """Takes JSON Lines of any length."""


class Enqueued(NamedTuple):
    """What became of one record; ``created`` False: the same job was there already."""

    id: str
    created: bool


class Page(NamedTuple):
    """Some jobs, in order of enqueue, and the cursor of the next page (None: that was the last)."""

    jobs: list[Job]
    next: str | None


class Swept(NamedTuple):
    """How many jobs a sweep buried because they had expired, and purged because their retention had ended."""

    expired: int
    purged: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that is enqueued again and again, at the boundaries that ``every`` and ``zone`` make.

    Two schedules are equal if they say the same and fire next at the same instant; the last three fields are the
    ledger's own notes.
    """

    name: str
    every: str
    """``@every N(s|m|h|d)``, five cron fields, or ``@hourly``, ``@daily``, ``@weekly``, ``@monthly``, ``@yearly``."""
    text: str
    queue: str = DEFAULT_QUEUE
    effect: str = DEFAULT_EFFECT
    priority: int = 0
    expires_s: float | None = None
    """Each fired job expires this long after its boundary."""
    stamps: Stamps = NO_STAMPS
    next_ms: int | None = None
    """The next boundary; None before the schedule is registered."""
    zone: str = "UTC"
    """The IANA time zone in which the cron fields are read."""
    missed: str | None = None
    """What becomes of boundaries that passed while nobody ticked: all, latest or none are fired. None: all of
    ``@every``, the latest of cron."""
    overlap: str = "allow"
    """``skip``: a boundary is not fired while the job that was fired last is unfinished."""
    paused: bool = False
    owner: str | None = None
    """What ``apply_schedules`` it came with; None: it was registered by itself."""
    since_ms: int | None = field(default=None, compare=False)
    """When the next boundary was computed: boundaries up to this instant have been dealt with."""
    tz_version: str | None = field(default=None, compare=False)
    """The version of the tz database that the next boundary was computed with; None: no zone but UTC was needed."""
    last_id: str | None = field(default=None, compare=False)
    """The id that was fired last."""


class Fire(NamedTuple):
    """One boundary of one schedule. ``created`` False: its id was already bound, or it was not fired."""

    schedule: str
    id: str
    boundary_ms: int
    created: bool
    error: str | None = None
    """Why the schedule cannot fire (a stored spec that is not understood); other schedules still do."""
    unfinished: str | None = None
    """The job because of which the boundary was passed over, of a schedule whose ``overlap`` is ``skip``."""


class Applied(NamedTuple):
    """What ``apply_schedules`` did, or would do: names of schedules."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unchanged: list[str]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One manual action, recorded with the action itself."""

    at_ms: int
    action: str
    """cancel, reschedule, redrive, resolve, purge, pause, resume, seal; copy-begin, copy-end; schedule-add,
    schedule-change, schedule-remove (by ``apply_schedules``), schedule-run, schedule-pause, schedule-resume."""
    id: str
    """The job's id; of a pause or resume the queue's name; of a seal the destination, of a copy the source; of what
    was done to a schedule its name."""
    actor: str | None
    reason: str | None
    from_state: str | None = None
    to_state: str | None = None
    version: int | None = None
    """The job's version after the action."""


@dataclass(frozen=True, slots=True)
class Row:
    """All that a ledger keeps of one id, for moving ledgers between kinds.

    ``job`` is None for a purged id (``purged_version`` is then its last version) and for an input that waits
    for its job.
    """

    id: str
    job: Job | None
    purged_version: int | None
    input: Input | None
    receipt: Receipt | None


class Export(NamedTuple):
    """Some rows in order of enqueue (ids without a job last), and the cursor of the next ones."""

    rows: list[Row]
    next: str | None
