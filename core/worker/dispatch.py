"""The dispatcher: the one thread that talks to the ledger about jobs.

It settles what the slots have finished and claims what comes next, in one commit where that can be, and hands the
claimed jobs to the slots. All of its state is its own: other threads reach it through ``Work``, ``LedgerWatch`` and
the flag that stops the worker, and wake it where it sleeps, which is in ``_sleep`` alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Final

from ..errors import FencepostError, LedgerBusy, LedgerError, LedgerFailed
from ..ledgers.protocol import Ledger
from ..model.effect import Effect
from ..model.events import Observers
from ..model.job import QUEUED, ClaimRequest, Job, lease_of
from ..model.query import JobQuery
from .attempt import Attempt, Finished
from .claims import Claims
from .heartbeat import GONE, Heartbeats
from .lease import NEVER, Lease
from .options import WorkerOptions
from .prefetch import Pace, outage_nap_s
from .settle import CrashHook, Settler
from .slots import Slots, read
from .watch import POLL_S, LedgerWatch
from .work import Finish, Work

_log = logging.getLogger("fencepost.worker")

UNSTARTED_PART: Final = 1 / 3
"""A claimed job that no slot has taken after this part of its lease is handed back."""


class Dispatcher:
    """Runs in the thread that called ``Worker.run``, which owns every field here."""

    def __init__(
        self,
        ledger: Ledger,
        effects: Mapping[str, Effect],
        options: WorkerOptions,
        *,
        work: Work,
        slots: Slots,
        settler: Settler,
        heartbeats: Heartbeats,
        watch: LedgerWatch,
        observers: Observers,
        crash: CrashHook | None,
        stopping: Callable[[], bool],
        stop: Callable[[], None],
        healthy: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._effects = effects
        self._options = options
        self._work = work
        self._slots = slots
        self._settler = settler
        self._heartbeats = heartbeats
        self._watch = watch
        self._observers = observers
        self._crash = crash
        self._stopping = stopping
        self._stop = stop
        self._healthy = healthy
        self._pace = Pace(options, one_at_a_time=crash is not None)
        self._claims = Claims(options, effects)
        self._unsettled: list[Finish] = []
        """Taken from the slots, and not yet moved in the ledger."""
        self._dry = False
        """The last claim found nothing: there is no other one before the watch says that it could find something."""
        self._awaits_watch = False
        self._hand_back_at = NEVER
        """When the first job that was given to the slots may have waited too long."""
        self._give_up_at = NEVER
        """When the grace of a stop is over."""
        self._looked_for_others = False
        self.idle_since: float | None = None
        """Since when there has been nothing to do; None while there is."""
        self.outages = 0
        """How often in a row the ledger could not be used."""
        self._resume_at = 0.0
        """When the ledger is tried again after an outage."""

    def run(self) -> None:
        """Work until the bound is reached, or until the worker is stopped and what runs is over.

        Raises:
            LedgerError: the ledger cannot be used (a following worker waits for it, where that can help).
        """
        try:
            while not self._is_over():
                self._step()
            self._leave_running()
        except BaseException:
            self._wind_down()
            raise

    def _step(self) -> None:
        if self._stopping():
            if self._give_up_at == NEVER:
                self._give_up_at = monotonic() + self._options.grace_s
                self._hand_back(after_part=0.0)
        else:
            if not self._options.bounded and monotonic() >= self._hand_back_at:
                self._hand_back(after_part=UNSTARTED_PART)
            self._heed_watch()
            self._stop_if_idle()
        if self._is_due():
            self._exchange()
        elif self._options.inline and (attempt := self._work.next()) is not None:
            self._slots.make(attempt)
        else:
            self._sleep()

    @property
    def fault(self) -> FencepostError | None:
        """What a bounded worker must end with, because of what became of a job."""
        return self._settler.fault

    # -- what there is to do --

    @property
    def _finished(self) -> int:
        return len(self._unsettled) + self._work.finished

    @property
    def _has_idle_slot(self) -> bool:
        """Whether a slot has nothing to make: what it finished is settled at once, and it needs another job."""
        return self._work.ready == 0 and self._claims.outstanding - self._finished < self._options.concurrency

    def _room(self) -> int:
        """How many jobs to claim now: for idle slots, or ahead where few are left that nobody has started."""
        if self._stopping() or self._settler.fault is not None:
            return 0
        ready = self._work.ready
        if not self._has_idle_slot and not (ready and self._pace.low(ready)):
            return 0
        return self._pace.room(waiting=ready, outstanding=self._claims.outstanding - self._finished)

    def _is_due(self) -> bool:
        """Whether to exchange with the ledger now."""
        if monotonic() < self._resume_at:
            return False
        if not self._dry and not self._claims.used_up and self._room() > 0:
            return True
        if not self._finished:
            return False
        return self._stopping() or self._has_idle_slot or monotonic() >= self._flush_at()

    def _flush_at(self) -> float:
        """Until when the first attempt that is over waits for others to be settled with."""
        first = self._unsettled[0] if self._unsettled else self._work.first_finished()
        return NEVER if first is None else first.at + self._pace.flush_s

    def _is_over(self) -> bool:
        if monotonic() >= self._give_up_at:
            return True
        if self._claims.outstanding > 0:
            return False
        return self._stopping() or (self._options.bounded and (self._dry or self._claims.used_up))

    def _stop_if_idle(self) -> None:
        idle_exit_s = self._options.idle_exit_s
        if idle_exit_s is None or self.idle_since is None or monotonic() - self.idle_since < idle_exit_s:
            return
        _log.info("nothing to do for %g s: the worker stops", idle_exit_s)
        self._stop()

    # -- sleeping --

    def _sleep(self) -> None:
        """Wait until there may be something to do: the only place where this thread waits while it works."""
        work = self._work
        # Both before the queues are looked at: whatever changes from here on wakes this thread.
        work.wake_at_ready = 0 if self._dry or self._claims.used_up else self._pace.low_mark
        work.wake_at_finish = True
        if work.ready and self._finished:
            work.wake_at_finish = False  # nothing is due before the flush, or before little is left to start
        if not self._is_due():  # once more, now that whoever changes it wakes this thread
            work.wake.wait(max(0.0, self._next_instant() - monotonic()))
        work.wake_at_finish = False
        work.wake_at_ready = -1

    def _next_instant(self) -> float:
        """When there may be something to do although nobody wakes this thread."""
        instant = min(monotonic() + POLL_S, self._give_up_at)
        if self._finished:
            instant = min(instant, self._flush_at())
        if not self._options.bounded and self._work.ready:
            instant = min(instant, self._hand_back_at)
        if self._options.idle_exit_s is not None and self.idle_since is not None:
            instant = min(instant, self.idle_since + self._options.idle_exit_s)
        # What the ledger keeps from being done is not due before the ledger is tried again.
        return max(instant, min(self._resume_at, self._give_up_at)) if self.outages else instant

    def _heed_watch(self) -> None:
        if not self._awaits_watch or self._watch.watching:
            return
        self._awaits_watch = False
        self._dry = False
        if self._watch.error is not None:
            self._outage(self._watch.error)

    # -- the exchange with the ledger --

    def _exchange(self) -> None:
        """Settle what is over and claim what comes next; an outage leaves all as it was."""
        drained = self._work.drain()
        self._unsettled += drained
        self._pace.took([finish.at - finish.attempt.started for finish in drained])
        began = monotonic()
        try:
            attempts = self._settle_and_claim()
        except (LedgerBusy, LedgerFailed) as error:
            self._outage(error)
            return
        if self.outages:
            _log.info("the ledger is back after %d tries", self.outages)
            self.outages = 0
        self._pace.exchanged(monotonic() - began)
        self._admit(attempts)
        self._healthy()
        if self._settler.fault is not None:
            self._stop()
        if self._dry and not self._awaits_watch and not self._is_over():
            self._awaits_watch = True
            self._watch.begin()
        self._note_idle(busy=not self._dry or self._claims.outstanding > 0)

    def _settle_and_claim(self) -> list[Attempt]:
        """Move every job of ``_unsettled``, and claim.

        Raises:
            LedgerError: the ledger failed; what is left in ``_unsettled`` was not moved for certain.
        """
        claims, now_ms = self._claims, self._options.now_ms
        for finish in [finish for finish in self._unsettled if not isinstance(finish.verdict, Finished)]:
            self._settler.move(finish.attempt, finish.verdict)
            self._unsettled.remove(finish)
            claims.outstanding -= 1
        settlements = self._settler.settlements(self._unsettled)
        sent = monotonic()
        request = claims.request(self._room())
        if request is not None:
            settled, jobs = self._ledger.settle_and_claim(settlements, request, now_ms=now_ms)
        else:
            settled, jobs = self._ledger.settle(settlements, now_ms=now_ms) if settlements else [], []
        done, self._unsettled = self._unsettled, []
        claims.outstanding -= len(done)
        claims.claimed(len(jobs))
        try:
            self._settler.settled(done, settled)
            if request is not None:
                looked = all(answer.completed for answer in settled)
                if looked and self._settler.fault is None:
                    self._claim_from_others(request, jobs)
                self._dry = looked and not jobs
            return [self._attempt(job, sent) for job in jobs]
        except BaseException:  # of whoever is told, or of the ledger: no slot will ever see these jobs
            self._release(jobs)
            raise

    def _claim_from_others(self, first: ClaimRequest, jobs: list[Job]) -> None:
        """Add to ``jobs`` from the queues whose turn it is not, as far as the first one left room."""
        for request in self._claims.others(first):
            if len(jobs) >= first.limit:
                break
            request = replace(request, limit=first.limit - len(jobs))
            try:
                more = self._ledger.settle_and_claim([], request, now_ms=self._options.now_ms)[1]
            except (LedgerBusy, LedgerFailed) as error:
                # What the other queues gave is claimed and must be worked on; the next exchange meets the error again.
                _log.debug("the other queues are claimed from by the next exchange: %s", error)
                break
            self._claims.claimed(len(more))
            jobs += more

    def _attempt(self, job: Job, sent: float) -> Attempt:
        lease = Lease(job, length_s=lease_of(job, self._options.lease_ms) / 1_000, claim_sent=sent)
        if (instant := lease.instant_of(UNSTARTED_PART)) < self._hand_back_at:
            self._hand_back_at = instant
        self._observers.job_claimed(job)
        if self._crash is not None:
            self._crash("claim", job)
        return Attempt(job, self._effects[job.effect], lease)

    def _admit(self, attempts: list[Attempt]) -> None:
        """Read what the claimed jobs need, and let the slots have them."""
        if attempts and not self._options.delay_ms:
            try:
                read(self._ledger, attempts)
            except LedgerError as error:
                _log.debug("%d claimed jobs are read one by one, by their slots: %s", len(attempts), error)
        self._work.add(attempts)

    def _hand_back(self, *, after_part: float) -> None:
        """Release the claimed jobs that no slot has taken and that have waited this part of their lease.

        Their attempts are not counted. Where the ledger cannot be reached, the leases of the rest lapse by themselves.
        """
        late: list[Attempt] = []
        waiting: list[Attempt] = []
        for attempt in self._work.take_back():
            (late if attempt.lease.has_passed(after_part) else waiting).append(attempt)
        self._work.add(waiting)
        self._hand_back_at = min(
            (attempt.lease.instant_of(UNSTARTED_PART) for attempt in waiting), default=NEVER
        )
        self._release([attempt.job for attempt in late])

    def _release(self, jobs: list[Job]) -> None:
        """Hand claimed jobs back that no slot has taken, uncounted."""
        self._claims.handed_back(len(jobs))
        for done, job in enumerate(jobs):
            try:
                self._ledger.release(job.id, job.version, now_ms=self._options.now_ms)
            except LedgerError as error:
                # Each of the rest would wait for the ledger as long again.
                _log.warning(
                    "%d jobs could not be handed back, their leases will lapse: %s", len(jobs) - done, error
                )
                return

    # -- outages, idleness, the end --

    def _outage(self, error: LedgerError) -> None:
        """The ledger cannot be used now: a following worker says so once, and tries again after a growing nap."""
        if self._options.bounded or isinstance(error, GONE):
            raise error
        self.idle_since = None  # there may be work that cannot be seen now
        if not self.outages:
            _log.error("the ledger cannot be used; claiming nothing until it can: %s", error)
        self.outages += 1
        self._resume_at = monotonic() + outage_nap_s(self.outages)

    def _note_idle(self, *, busy: bool) -> None:
        if busy:
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = monotonic()
            if not self._looked_for_others:
                self._looked_for_others = True
                self._report_others()

    def _report_others(self) -> None:
        """Say once which queued jobs this worker leaves, because it has not loaded their effects."""
        try:
            page = self._ledger.jobs(JobQuery(states=(QUEUED,), limit=1_000))
        except LedgerError as error:
            _log.debug("queued jobs of other effects were not looked for: %s", error)
            return
        others = sorted({job.effect for job in page.jobs} - self._effects.keys())
        if others:
            _log.warning("jobs stay queued whose effects this worker has not loaded: %s", ", ".join(others))

    def _leave_running(self) -> None:
        """At the end of the grace: let the leases of what still runs lapse, and settle what has finished."""
        for lease in self._heartbeats.running():
            self._heartbeats.give_up(lease)
            _log.warning("%s: still running after the grace; its lease will lapse", lease.job.id)
        if self._finished:
            self._exchange()

    def _wind_down(self) -> None:
        """After an error: hand back what has not started, let what runs finish, and try once to settle it."""
        self._stop()  # so that what settles the rest claims nothing
        self._hand_back(after_part=0.0)
        over_at = monotonic() + self._options.grace_s
        self._work.wake_at_finish = True
        while self._claims.outstanding > self._finished and (left_s := over_at - monotonic()) > 0:
            self._work.wake.wait(left_s)
        self._unsettled += self._work.drain()
        if not self._unsettled:
            return
        try:
            self._settle_and_claim()
        except LedgerError as error:
            _log.warning("%d finished attempts could not be settled: %s", len(self._unsettled), error)
