"""The ledger's verbs, in the order of a job's life: what every kind of ledger promises.

``now_ms=None`` means the ledger's own clock, read once. Moves are described in ``job.py``; a refused move is a
value (``False``, a shorter list), a broken store is an exception (``errors.py``), and never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ..model.documents import JSON
from ..model.inputs import Input, NewJob
from ..model.job import (
    CANCELLED,
    EXHAUSTED,
    FAILED_BY_OPERATOR,
    ClaimRequest,
    Decision,
    Job,
    State,
)
from ..model.query import ALL_JOBS, JobQuery
from ..model.receipts import Published, Receipt, Settled, Settlement
from ..model.records import (
    Applied,
    AuditEntry,
    Capabilities,
    Enqueued,
    Export,
    Fire,
    Page,
    Row,
    Schedule,
    Swept,
)

if TYPE_CHECKING:
    from ..model.queue_counts import QueueCounts


class Ledger(Protocol):
    """Where jobs, inputs, receipts and schedules live. Safe to share between threads."""

    @property
    def capabilities(self) -> Capabilities:
        """In what this kind differs from others."""

    @property
    def location(self) -> str:
        """The absolute path, or the URL without its password."""

    # -- opening and waiting --

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Let go of files and connections; leases stay as they are."""

    def now_ms(self) -> int:
        """The ledger's own clock."""

    def wait(self, timeout_s: float) -> bool:
        """Sleep until a commit since this object's last claim began (its own may count), or the time-out."""

    # -- enqueue --

    def enqueue(
        self, jobs: Iterable[NewJob], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        """Store all of the jobs, or none; a known id with the same text and effect is left as it is.

        Raises:
            InvalidInput: a record breaks a rule; nothing was stored, no store was made.
            IdentityConflict: an id is bound to another text or effect; nothing was stored.
        """

    # -- claim --

    def claim(self, request: ClaimRequest, *, now_ms: int | None = None) -> list[Job]:
        """Reap jobs whose time has passed, then take ready jobs in the order of claims; one atomic step."""

    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        """``settle``, then ``claim``, in one commit: what a busy worker does all day.

        Where any item conflicts or is refused, nothing is claimed: the caller has to look at that first.
        """

    def read_inputs(self, ids: Iterable[str]) -> dict[str, Input]:
        """The inputs that are there.

        Raises:
            LedgerCorrupt: the input of a job is missing or altered.
        """

    def receipts(self, ids: Iterable[str]) -> dict[str, Receipt]:
        """The receipts that are there."""

    # -- while a claim holds the job: each is refused (False) without the current fence inside the lease --

    def begin(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """The attempt of a ``once`` effect starts now."""

    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        """Let the lease end ``extend_ms`` from now, never sooner than it would; 0 only asks."""

    def publish(self, receipt: Receipt) -> Published:
        """Store the receipt durably, or find the same one stored.

        Raises:
            ReceiptConflict: another receipt is stored under the id; it stays.
        """

    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """The job is done."""

    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """Publish and complete a batch in one commit; each item succeeds or fails by itself.

        A receipt stays even where the completion is refused. Answers come in the order of the settlements.
        """

    def retry(
        self,
        id: str,
        version: int,
        *,
        run_at_ms: int | None,
        error: str | None,
        max_attempts: int,
        exhausted_error: str = EXHAUSTED,
        now_ms: int | None = None,
    ) -> bool:
        """The attempt failed: queue the job again for ``run_at_ms``, or bury it after the last attempt."""

    def fail(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """Bury the job at once."""

    def release(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        """Hand back a job that was not started; the attempt is not counted."""

    def hold(self, id: str, version: int, *, error: str, now_ms: int | None = None) -> bool:
        """Park the job for an operator."""

    # -- what an operator does: recorded in the audit, in the same commit --

    def cancel(
        self,
        id: str,
        *,
        actor: str | None = None,
        reason: str | None = None,
        error: str = CANCELLED,
        now_ms: int | None = None,
    ) -> bool:
        """Bury a job that is not finished; its owner's later moves are refused."""

    def reschedule(
        self,
        id: str,
        *,
        run_at_ms: int | None = None,
        priority: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
        now_ms: int | None = None,
    ) -> bool:
        """Give a queued job another run_at, another priority, or both; what is not given stays as it is.

        Raises:
            InvalidInput: neither is given, or one is out of its range.
        """

    def redrive(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Queue a dead job again, with no attempts used; held where nobody knows whether it was applied."""

    def resolve(
        self,
        id: str,
        *,
        decision: Decision,
        outcome: Mapping[str, JSON] | None = None,
        actor: str | None = None,
        reason: str | None = None,
        error: str = FAILED_BY_OPERATOR,
        now_ms: int | None = None,
    ) -> bool:
        """Decide a held job. ``applied`` publishes ``outcome``, or adopts the receipt that is there.

        A receipt that an operator gives names no effect_version: no version of the effect has said so, and none
        computes it again. What fails so keeps what it was held for in its last error, behind ``error``.

        Raises:
            InvalidInput: ``applied`` without an outcome where there is no receipt.
            ReceiptConflict: ``applied`` with an outcome that the stored receipt contradicts.
        """

    def purge(
        self, id: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Forget a dead job now, whatever its retention; its id stays bound to its text."""

    def sweep_expired(self, *, queue: str | None = None, now_ms: int | None = None) -> Swept:
        """Purge what was kept long enough, then bury what has expired, queued or running."""

    # -- looking --

    def get_job(self, id: str) -> Job | None:
        """The job, live, completed, dead or held; None for an id that is unknown or purged."""

    def jobs(self, query: JobQuery = ALL_JOBS) -> Page:
        """A page of jobs in order of enqueue.

        Where the query ``searches``, each job of its states, queue and effect is looked at: for people, not for
        workers.

        Raises:
            InvalidInput: the cursor is not one that a page of this ledger ended with.
        """

    def counts(self, *, queue: str | None = None) -> dict[State, int]:
        """How many jobs are in each of the five states."""

    def queue_counts(self, *, since_ms: int, now_ms: int | None = None) -> list[QueueCounts]:
        """Counts of every queue that has jobs, by name; what was finished from ``since_ms`` on gives its rate.

        It looks at every job: for people, not for workers.
        """

    def latest_deaths(self, *, limit: int = 10) -> list[Job]:
        """The jobs that died last, the latest first."""

    def next_due_ms(
        self, *, queues: Sequence[str] | None = None, effects: Sequence[str] | None = None
    ) -> int | None:
        """The next instant at which a claim could find something; one that has passed is reported too."""

    def audit(self, *, id: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """The latest manual actions, oldest first."""

    # -- moving a whole ledger to another kind --

    def seal(self, destination: str, *, actor: str | None = None, now_ms: int | None = None) -> None:
        """Refuse every later claim, enqueue and move by name of ``destination``; harmless to repeat.

        Raises:
            LedgerBusy: a lease is live.
            LedgerSealed: sealed already for another destination, or the copy to here has not ended.
        """

    def sealed_for(self) -> str | None:
        """The destination it was sealed for; None: not sealed."""

    def begin_copy(self, source: str, *, actor: str | None = None, now_ms: int | None = None) -> bool:
        """Refuse all but ``import_rows`` until ``end_copy``: what has not come yet must not be done again.

        False: this copy is under way already.

        Raises:
            IdentityConflict: the ledger holds something.
            LedgerSealed: it was copied on, or the copy of another source has not ended.
        """

    def end_copy(
        self,
        source: str,
        *,
        paused: Sequence[str] = (),
        schedules: Sequence[Schedule] = (),
        actor: str | None = None,
        now_ms: int | None = None,
    ) -> bool:
        """Let work begin, with these pauses and these schedules, each with its next boundary, in one commit.

        False: no copy of that source is under way, nothing was done.

        Raises:
            Unsupported: there are pauses or schedules (without capability has_schedules).
        """

    def copying_from(self) -> str | None:
        """The source of the copy that has begun and not ended; None: there is none."""

    def export_rows(self, *, after: str | None = None, limit: int = 1000) -> Export:
        """Everything that is kept, in pages; stable once the ledger is sealed."""

    def check_room(self, rows: Iterable[Row]) -> None:
        """Whether a ledger that holds all of these rows, and no others, is one of this kind; stores nothing.

        Raises:
            LimitExceeded: together they are more than it carries.
        """

    def import_rows(self, rows: Sequence[Row], *, copy_of: str | None = None) -> int:
        """Store rows as they are, in one commit; those that are there already, equal, are passed over.

        Also while a copy has not ended. Returns how many were new.

        Args:
            copy_of: only while the copy of this source is under way.

        Raises:
            IdentityConflict: one that is there differs; or ``copy_of`` has ended.
        """

    # -- pauses and schedules (capability has_schedules; elsewhere Unsupported) --

    def pause(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Let no claim pick from the queue; running jobs finish, settling goes on. False: it was paused."""

    def resume(
        self, queue: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """End the pause. False: it was not paused."""

    def paused(self) -> list[str]:
        """The queues that are paused, by name."""

    def register_schedule(self, schedule: Schedule, *, now_ms: int | None = None) -> None:
        """Add or replace the schedule of that name; its next boundary stays while ``every`` and ``zone`` do.

        Raises:
            InvalidInput: it breaks a rule, or the one that is there came with ``apply_schedules``.
        """

    def unregister_schedule(self, name: str) -> bool:
        """Remove it; False if there is none."""

    def apply_schedules(
        self,
        schedules: Iterable[Schedule],
        *,
        owner: str = "config",
        actor: str | None = None,
        dry_run: bool = False,
        now_ms: int | None = None,
    ) -> Applied:
        """Make the owner's schedules these, and no others, in one commit; those of nobody, and of other owners, stay.

        With ``dry_run`` it only says what it would do.

        Raises:
            InvalidInput: one breaks a rule, or its name is taken by a schedule that is not the owner's; nothing was
                changed.
        """

    def schedules(self) -> list[Schedule]:
        """All schedules, by name."""

    def pause_schedule(
        self, name: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """Let no tick fire it. False: there is none of that name, or it was paused."""

    def resume_schedule(
        self, name: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> bool:
        """End the pause: it goes on with its first boundary after now. False: it was not paused."""

    def run_schedule(
        self, name: str, *, actor: str | None = None, reason: str | None = None, now_ms: int | None = None
    ) -> Fire | None:
        """Fire it now, as ``<name>-<now_ms>``, whether it is paused or not. None: there is none of that name."""

    def tick(self, *, now_ms: int | None = None) -> list[Fire]:
        """Fire the boundaries that have passed, oldest first, each once; at most 64 a schedule."""

    def soonest(self) -> int | None:
        """The next boundary of any schedule that can fire."""
