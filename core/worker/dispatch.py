"""A turn: settle what has finished and claim what comes next, in one commit where that can be."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TypeAlias

from ..errors import (
    FencepostError,
    LeaseLost,
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerFailed,
)
from ..ledgers.protocol import Ledger
from ..model.effect import Effect
from ..model.events import Event, Observers
from ..model.job import (
    COMPLETED,
    DEAD,
    HELD,
    QUEUED,
    ClaimRequest,
    Job,
    lease_of,
    limit_of,
)
from ..model.policy import backoff_ms
from ..model.query import JobQuery
from ..model.receipts import Settled, Settlement
from .attempt import (
    Attempt,
    Broken,
    Failed,
    Finished,
    Held,
    Lost,
    Rejected,
    Verdict,
    examine,
)
from .options import WorkerOptions
from .prefetch import Pace

_log = logging.getLogger("fencepost.worker")

Finish: TypeAlias = tuple[Attempt, Verdict, float]
"""An attempt, what came of it, and how many seconds it took."""
CrashHook: TypeAlias = Callable[[str, Job], None]
"""Told ``claim`` and ``effect`` with the job, at the two instants that ``--crash-after`` names."""


class Turns:
    """Turns what finished attempts say into moves, and tells what became of them. Not for two threads at once."""

    def __init__(
        self,
        ledger: Ledger,
        effects: Mapping[str, Effect],
        options: WorkerOptions,
        *,
        pace: Pace,
        tell: Callable[[Event], None],
        observers: Observers,
        crash: CrashHook | None,
    ) -> None:
        self._ledger = ledger
        self._effects = effects
        self._options = options
        self._pace = pace
        self._tell = tell
        self._observers = observers
        self._crash = crash
        self._fresh: tuple[str, int] | None = None
        """The attempt whose receipt was published ahead of its settling, so that a crash could come between."""
        self._queues: list[str] = list(options.queues or ())
        self._left = options.max_jobs
        self.outstanding = 0
        """Claimed jobs that have not been settled or handed back."""
        self.looked = False
        """Whether the last turn got to claiming; it does not where a completion was refused."""
        self.over = False
        """A bounded worker is through: its bound is reached, or nothing is ready."""
        self.fault: FencepostError | None = None
        """What a bounded worker must end with."""

    @property
    def may_claim(self) -> bool:
        """Whether the bound lets another attempt be made."""
        return not self.over and self._left != 0 and self.fault is None

    def take(self, batch: list[Finish], *, claim: bool, waiting: int) -> list[Attempt]:
        """Move every job of ``batch``, and claim. What was moved is taken out of ``batch``.

        Raises:
            LedgerError: the ledger failed; what is left in ``batch`` was not moved for certain.
        """
        self._pace.took([took_s for _, _, took_s in batch])
        self._move_unfinished(batch)
        settlements = self._settlements(batch)
        sent = monotonic()
        request = self._request(waiting, self.outstanding - len(batch)) if claim else None
        if request is not None:
            settled, jobs = self._ledger.settle_and_claim(settlements, request, now_ms=self._options.now_ms)
        else:
            settled, jobs = self._ledger.settle(settlements, now_ms=self._options.now_ms), []
        self.outstanding += len(jobs) - len(batch)
        for (attempt, verdict, _), answer in zip(batch, settled, strict=True):
            self._settled(attempt, verdict, answer)
        batch.clear()
        self.looked = request is not None and all(answer.completed for answer in settled)
        if request is not None and self.looked and self.fault is None:
            jobs += self._other_queues(request, request.limit - len(jobs))
            self._count(len(jobs))
        elif self._left == 0 and self.outstanding == 0:
            self.over = True
        return [self._attempt(job, sent) for job in jobs]

    def release(self, attempts: list[Attempt]) -> None:
        """Hand back claimed jobs that were not started; at the first error the rest is left to lapse."""
        self.outstanding -= len(attempts)
        if self._left is not None:
            self._left += len(attempts)
        for done, attempt in enumerate(attempts):
            job = attempt.job
            try:
                self._ledger.release(job.id, job.version, now_ms=self._options.now_ms)
            except LedgerError as error:
                # Each of the rest would wait for the ledger as long again.
                _log.warning(
                    "%d jobs could not be handed back, their leases will lapse: %s",
                    len(attempts) - done,
                    error,
                )
                return

    # -- reading --

    def load(self, claimed: list[Attempt]) -> None:
        """Read inputs and receipts at once; where that fails, the slots read for themselves and say why."""
        try:
            self.read(claimed)
        except LedgerError as error:
            _log.debug("%d claimed jobs are read one by one: %s", len(claimed), error)

    def read(self, claimed: list[Attempt]) -> None:
        """Read the inputs and receipts of claimed jobs.

        Raises:
            LedgerError: one of them cannot be read; nothing was set.
        """
        ids = [attempt.job.id for attempt in claimed]
        inputs, receipts = self._ledger.read_inputs(ids), self._ledger.receipts(ids)
        if missing := [id for id in ids if id not in inputs]:
            raise LedgerCorrupt(f"{self._ledger.location}: the job {missing[0]!r} has no input")
        for attempt in claimed:
            attempt.stored = receipts.get(attempt.job.id)
            attempt.input = inputs[attempt.job.id]

    def report_others(self) -> None:
        """Say once which queued jobs this worker leaves, because it has not loaded their effects."""
        try:
            page = self._ledger.jobs(JobQuery(states=(QUEUED,), limit=1_000))
        except LedgerError as error:
            _log.debug("queued jobs of other effects were not looked for: %s", error)
            return
        others = sorted({job.effect for job in page.jobs} - self._effects.keys())
        if others:
            _log.warning("jobs stay queued whose effects this worker has not loaded: %s", ", ".join(others))

    # -- claiming --

    def _request(self, waiting: int, outstanding: int) -> ClaimRequest | None:
        room = self._pace.room(waiting=waiting, outstanding=outstanding)
        if self._left is not None:
            room = min(room, self._left)
        if room < 1 or not self.may_claim:
            return None
        queues: tuple[str, ...] | None = None
        if self._queues:
            # One queue at a time, each first in its turn: a full one never starves the others.
            self._queues.append(self._queues.pop(0))
            queues = (self._queues[-1],)
        return self._claim_request(room, queues)

    def _claim_request(self, limit: int, queues: tuple[str, ...] | None) -> ClaimRequest:
        return ClaimRequest(
            claimant=self._options.claimant,
            lease_ms=self._options.lease_ms,
            max_attempts=self._options.max_attempts,
            limit=limit,
            queues=queues,
            effects=tuple(self._effects),
        )

    def _other_queues(self, first: ClaimRequest, room: int) -> list[Job]:
        found: list[Job] = []
        for queue in self._queues[:-1] if first.queues else ():
            if room - len(found) < 1:
                break
            request = self._claim_request(room - len(found), (queue,))
            try:
                found += self._ledger.settle_and_claim([], request, now_ms=self._options.now_ms)[1]
            except (LedgerBusy, LedgerFailed) as error:
                # What the other queues gave is claimed and must be worked on; the next turn meets the error again.
                _log.debug("the queue %r is claimed from by the next turn: %s", queue, error)
                break
        self.outstanding += len(found)
        return found

    def _count(self, claimed: int) -> None:
        if self._left is None:
            return
        self._left -= claimed
        if self.outstanding == 0:
            self.over = True

    def _attempt(self, job: Job, sent: float) -> Attempt:
        lease_s = lease_of(job, self._options.lease_ms) / 1_000
        attempt = Attempt(job, self._effects[job.effect], lease_s=lease_s, claim_sent=sent)
        self._observers.job_claimed(job)
        if self._crash is not None:
            self._crash("claim", job)
        return attempt

    # -- settling --

    def _settlements(self, batch: list[Finish]) -> list[Settlement]:
        settlements = [
            Settlement(attempt.job.id, attempt.job.version, verdict.receipt)
            for attempt, verdict, _ in batch
            if isinstance(verdict, Finished)
        ]
        if self._crash is not None:
            for attempt, verdict, _ in batch:
                if isinstance(verdict, Finished):
                    if not self._ledger.publish(verdict.receipt).reused:
                        self._fresh = (attempt.job.id, attempt.job.version)
                    self._crash("effect", attempt.job)
        return settlements

    def _settled(self, attempt: Attempt, verdict: Verdict, answer: Settled) -> None:
        assert isinstance(verdict, Finished), "only finished attempts are settled"
        job = attempt.job
        try:
            if answer.conflict:
                self._contested(attempt)
            elif answer.completed or self._was_mine(job):
                adopted = answer.reused and not attempt.effect.pure and self._fresh != (job.id, job.version)
                self._completed(job, verdict, verdict.reused or adopted)
            else:
                self._lost(job)
        except LedgerError as error:
            # The commit is made; only the second look failed. Not to report success is the safe side.
            _log.warning("%s: what became of it could not be read: %s", job.id, error)
            self._lost(job)

    def _completed(self, job: Job, verdict: Finished, reused: bool) -> None:
        self._tell(Event(job.id, job.version, COMPLETED, reused))
        self._observers.job_completed(job, verdict.receipt, reused)

    def _contested(self, attempt: Attempt) -> None:
        """Another receipt was there first: an acting effect's is adopted, anything else is a broken promise."""
        job = attempt.job
        stored = self._ledger.receipts([job.id])[job.id]
        assert attempt.input is not None, "a finished attempt has its input"
        verdict = examine(job, attempt.input, stored, attempt.effect)
        if not isinstance(verdict, Finished):
            self._moved(attempt, verdict)
        elif self._ledger.complete(job.id, job.version, now_ms=self._options.now_ms) or self._was_mine(job):
            self._completed(job, verdict, reused=True)
        else:
            self._lost(job)

    def _was_mine(self, job: Job) -> bool:
        """Whether this very claim completed the job, in a commit whose answer was lost.

        Only the holder of a version completes under it, so a completed job of that version was this claim's.
        """
        found = self._ledger.get_job(job.id)
        return found is not None and found.state == COMPLETED and found.version == job.version

    # -- all other moves --

    def _move_unfinished(self, batch: list[Finish]) -> None:
        for finish in [finish for finish in batch if not isinstance(finish[1], Finished)]:
            attempt, verdict, _ = finish
            self._moved(attempt, verdict)
            batch.remove(finish)
            self.outstanding -= 1

    def _moved(self, attempt: Attempt, verdict: Verdict) -> None:
        job, options = attempt.job, self._options
        if isinstance(verdict, Lost):
            self._lost(job)
        elif isinstance(verdict, Rejected):
            moved = self._ledger.fail(job.id, job.version, error=verdict.error, now_ms=options.now_ms)
            self._tell_moved(job, moved, DEAD, verdict.error)
        elif isinstance(verdict, Held):
            self._park(job, verdict.error)
        elif isinstance(verdict, Failed):
            self._retry(job, verdict)
        elif isinstance(verdict, Broken):
            self._broken(job, verdict.error)

    def _retry(self, job: Job, verdict: Failed) -> None:
        last = job.attempts >= limit_of(job, self._options.max_attempts)
        if last and verdict.unknown:
            self._park(job, verdict.error)
            return
        if verdict.after_s is None:
            delay_ms = backoff_ms(job.attempts, job.stamps.backoff_base_ms, random.uniform)
        else:
            delay_ms = round(max(0.0, verdict.after_s) * 1_000)
        now_ms = self._ledger.now_ms() if self._options.now_ms is None else self._options.now_ms
        run_at_ms = now_ms + delay_ms
        moved = self._ledger.retry(
            job.id,
            job.version,
            run_at_ms=run_at_ms,
            error=verdict.error,
            max_attempts=self._options.max_attempts,
            now_ms=self._options.now_ms,
        )
        self._tell_moved(job, moved, DEAD if last else QUEUED, verdict.error, run_at_ms)

    def _park(self, job: Job, error: str) -> None:
        moved = self._ledger.hold(job.id, job.version, error=error, now_ms=self._options.now_ms)
        self._tell_moved(job, moved, HELD, error)

    def _broken(self, job: Job, error: FencepostError) -> None:
        if self._options.bounded:
            self.fault = self.fault or error
        else:
            _log.error("%s: a promise is broken, the job is held: %s", job.id, error)
            self._park(job, f"{type(error).__name__}: {error}")

    def _tell_moved(
        self, job: Job, moved: bool, state: str, error: str, run_at_ms: int | None = None
    ) -> None:
        if not moved:
            self._lost(job)
        elif state == QUEUED:
            self._tell(Event(job.id, job.version, QUEUED, error=error))
            self._observers.job_retried(job, error, run_at_ms)
        elif state == DEAD:
            self._tell(Event(job.id, job.version, DEAD, error=error))
            self._observers.job_dead(job, error)
        else:
            self._tell(Event(job.id, job.version, HELD, error=error))
            self._observers.job_held(job, error)

    def _lost(self, job: Job) -> None:
        message = (
            f"the lease of job {job.id!r} was lost: its claim {job.version} no longer holds, so nothing is "
            "reported as done; a receipt that was published stays, and the next worker reuses it"
        )
        self._observers.job_lost(job)
        if self._options.bounded:
            self.fault = self.fault or LeaseLost(message)
        else:
            _log.warning("%s", message)
            self._tell(Event(job.id, job.version, "lost", error=message))
