"""From verdicts to moves: what finished attempts ask of the ledger, and who is told what became of it."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..errors import FencepostError, LeaseLost, LedgerError
from ..ledgers.protocol import Ledger
from ..model.events import Event, Observers
from ..model.job import COMPLETED, DEAD, HELD, QUEUED, Job, limit_of
from ..model.policy import backoff_ms
from ..model.receipts import Settled, Settlement
from .attempt import Attempt, Broken, Failed, Finished, Held, Lost, Rejected, Verdict, examine
from .options import WorkerOptions
from .work import Finish

_log = logging.getLogger("fencepost.worker")

CrashHook: TypeAlias = Callable[[str, Job], None]
"""Told ``claim`` and ``effect`` with the job, at the two instants that ``--crash-after`` names."""


class Settler:
    """Asks the ledger for the moves that verdicts name, and tells of each. For the dispatcher's thread alone."""

    def __init__(
        self,
        ledger: Ledger,
        options: WorkerOptions,
        *,
        tell: Callable[[Event], None],
        observers: Observers,
        crash: CrashHook | None,
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._tell = tell
        self._observers = observers
        self._crash = crash
        self._fresh: tuple[str, int] | None = None
        """The attempt whose receipt was published ahead of its settlement, so that a crash could come between."""
        self.fault: FencepostError | None = None
        """What a bounded worker must end with."""

    # -- finished attempts: the dispatcher settles them in one commit with its next claim --

    def settlements(self, finished: Sequence[Finish]) -> list[Settlement]:
        """What the ledger is to settle for these attempts, whose verdicts are all ``Finished``."""
        settlements = [
            Settlement(attempt.job.id, attempt.job.version, verdict.receipt)
            for attempt, verdict, _ in finished
            if isinstance(verdict, Finished)
        ]
        if self._crash is not None:
            for settlement, (attempt, _, _) in zip(settlements, finished, strict=True):
                if not self._ledger.publish(settlement.receipt).reused:
                    self._fresh = (attempt.job.id, attempt.job.version)
                self._crash("effect", attempt.job)
        return settlements

    def settled(self, finished: Sequence[Finish], answers: Sequence[Settled]) -> None:
        """Tell what became of each settlement."""
        for (attempt, verdict, _), answer in zip(finished, answers, strict=True):
            assert isinstance(verdict, Finished), "only finished attempts are settled"
            self._told(attempt, verdict, answer)

    def _told(self, attempt: Attempt, verdict: Finished, answer: Settled) -> None:
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
            self.move(attempt, verdict)
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

    # -- all other verdicts: a move each --

    def move(self, attempt: Attempt, verdict: Verdict) -> None:
        """Ask for the move that this verdict names, and tell of it."""
        job, options = attempt.job, self._options
        if isinstance(verdict, Lost):
            self._lost(job)
        elif isinstance(verdict, Rejected):
            moved = self._ledger.fail(job.id, job.version, error=verdict.error, now_ms=options.now_ms)
            self._tell_moved(job, moved, DEAD, verdict.error)
        elif isinstance(verdict, Held):
            self._hold(job, verdict.error)
        elif isinstance(verdict, Failed):
            self._retry(job, verdict)
        elif isinstance(verdict, Broken):
            self._broken(job, verdict.error)

    def _retry(self, job: Job, verdict: Failed) -> None:
        last = job.attempts >= limit_of(job, self._options.max_attempts)
        if last and verdict.unknown:
            self._hold(job, verdict.error)
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

    def _hold(self, job: Job, error: str) -> None:
        moved = self._ledger.hold(job.id, job.version, error=error, now_ms=self._options.now_ms)
        self._tell_moved(job, moved, HELD, error)

    def _broken(self, job: Job, error: FencepostError) -> None:
        if self._options.bounded:
            self.fault = self.fault or error
        else:
            _log.error("%s: a promise is broken, the job is held: %s", job.id, error)
            self._hold(job, f"{type(error).__name__}: {error}")

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
