"""The worker: claim → effect → receipt → complete, over and over.

Threads: ``concurrency`` slots make the attempts. A slot that has nothing at hand takes a *turn*: it settles what has
finished and claims what comes next, in one commit. One thread at a time takes a turn, the slots go on. The thread
that called ``run`` keeps house (``housekeeping.py``); it takes a turn for what has waited long enough, and claims
ahead for several slots. Heartbeats have a thread of their own (``heartbeats.py``).

The order that finishes a job exactly once: the receipt is durable first, then the completion asks for the current
fence inside the lease. A worker that dies between the two leaves a receipt, which the next claim finds and reuses;
one that comes late finds its completion refused, and says so instead of reporting success.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from ..errors import (
    LeaseLost,
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerFailed,
    LedgerReplaced,
    LedgerSealed,
)
from ..ledgers.protocol import Ledger
from ..model.effect import Effect, EffectRequest
from ..model.events import Event, NoObservers, Observers
from .attempt import (
    Attempt,
    Broken,
    Lost,
    Renew,
    Verdict,
    perform,
)
from .dispatch import CrashHook, Finish, Turns
from .heartbeat import Heart
from .maintenance import Housekeeper
from .options import WorkerOptions
from .prefetch import Pace, outage_nap_s

_log = logging.getLogger("fencepost.worker")

GONE: Final = (LedgerReplaced, LedgerSealed)
"""No waiting brings such a ledger back."""
SLICE_S: Final = 0.25
"""How long a slot waits before it looks whether the worker was stopped."""
POLL_S: Final = 5.0
"""How long an idle worker trusts the ledger's wake-ups alone."""
MIN_NAP_S: Final = 0.05
"""The shortest wait for an instant that has passed without a claim finding anything."""


class Worker(Renew):
    """Works on a ledger with the given effects, until it is stopped or its bound is reached.

    Args:
        ledger: an open ledger; it stays open.
        effects: what this worker can do, by name; it claims nothing else.
        on_event: called with each attempt's event, one at a time.
        crash: for ``--crash-after``; makes the worker claim one job at a time.
        healthy: called after each exchange with the ledger that went well.
    """

    def __init__(
        self,
        ledger: Ledger,
        effects: Mapping[str, Effect],
        options: WorkerOptions,
        *,
        on_event: Callable[[Event], None] = lambda event: None,
        observers: Observers | None = None,
        crash: CrashHook | None = None,
        healthy: Callable[[], None] = lambda: None,
    ) -> None:
        self._ledger = ledger
        self._effects = dict(effects)
        self._logs = {name: _log.getChild(name) for name in self._effects}
        self._options = options
        self._observers = NoObservers() if observers is None else observers
        self._healthy = healthy
        self._pace = Pace(options, one_at_a_time=crash is not None)
        self._turns = Turns(
            ledger,
            self._effects,
            options,
            pace=self._pace,
            tell=on_event,
            observers=self._observers,
            crash=crash,
        )
        self._heart = Heart(ledger, now_ms=options.now_ms, failed=self.fail)
        self._ready: deque[Attempt] = deque()
        self._finished: deque[Finish] = deque()
        self._first_finish = 0.0
        self._unwatched = False
        """An attempt has finished, and the thread that keeps house was not told."""
        self._turning = threading.Lock()
        self._watching = threading.Lock()
        self._changed = threading.Condition()
        self._resting = 0
        self._stopping = threading.Event()
        self.news = threading.Event()
        """Set when an attempt has finished that no turn has settled yet, and when a slot has ended."""
        self.idle_since: float | None = None
        """Since when there has been nothing to do; None while there is."""
        self._fault: BaseException | None = None
        self._outages = 0
        self._resume_at = 0.0
        self._looked_for_others = False
        self._dry = False
        """The last claim found nothing: no slot claims before the one that watches says so."""
        self._turn_count = 0

    # -- for whoever runs it --

    def run(self) -> None:
        """Work until the bound is reached, or until ``stop``; can be called once.

        Raises:
            LeaseLost: bounded only: a completion was refused.
            ReceiptConflict, LedgerCorrupt: bounded only: a promise is broken; the job is left as it is.
            LedgerError: the ledger cannot be used (a following worker waits for it, where that can help).
        """
        claimant, store = self._options.claimant, self._ledger.location
        self._observers.worker_started(claimant, store, tuple(self._effects))
        slots = [
            threading.Thread(target=self._slot, name=f"fencepost-slot-{number}", daemon=True)
            for number in range(self._options.concurrency)
        ]
        self._heart.start()
        try:
            for slot in slots:
                slot.start()
            Housekeeper(self, self._ledger, self._options).keep(slots)
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self._heart.stop()
            fault = self._fault
            self._observers.worker_stopped(claimant, store, None if fault is None else str(fault))
        if fault is not None:
            raise fault

    def stop(self) -> None:
        """Claim nothing more, hand back what has not started, let running attempts finish. Safe in a signal."""
        self._stopping.set()

    # -- for the housekeeper --

    @property
    def stopping(self) -> bool:
        """Whether the worker was asked to stop, or has to."""
        return self._stopping.is_set()

    def fail(self, error: BaseException) -> None:
        """Stop, and have ``run`` raise this error, unless there was one before."""
        if self._fault is None:
            self._fault = error
        self._stopping.set()

    def running(self) -> list[Attempt]:
        """The attempts that are under way."""
        return self._heart.running()

    def give_up(self, attempt: Attempt) -> None:
        """Let the attempt's lease lapse, and tell its effect; the slot stays taken until it returns."""
        self._heart.remove(attempt)
        attempt.lose()

    def tell_lapsed(self) -> None:
        """Tell the attempts whose lease has ended."""
        self._heart.tell_lapsed()

    def flush(self) -> None:
        """Settle what has waited for company, and claim ahead where little is left, unless a slot is at it."""
        if not self._low() and self._finished and (early_s := self._waits_until() - monotonic()) > 0:
            time.sleep(early_s)
        low = self._low()
        if low or self._waited():
            self._try_turn(claim=low)

    def hand_back(self, *, of_lease: float = 0.0) -> None:
        """Release claimed jobs that have not started and have waited such a part of their lease.

        Their attempt is not counted. Where the ledger cannot be reached, the leases of the rest lapse by themselves.
        """
        if not any(attempt.has_waited(of_lease) for attempt in self._ready.copy()):
            return
        with self._turning:
            handed_back = []
            for _ in range(len(self._ready)):
                if (attempt := self._pop()) is None:
                    break
                if attempt.has_waited(of_lease):
                    handed_back.append(attempt)
                else:
                    self._ready.append(attempt)
            self._turns.release(handed_back)

    # -- a slot --

    def _slot(self) -> None:
        try:
            while (attempt := self._next()) is not None:
                self._finish(attempt, self._perform(attempt))
        except BaseException as error:  # noqa: BLE001 - whatever ends a slot must end the worker, and be seen
            self.fail(error)
        finally:
            self.news.set()

    def _next(self) -> Attempt | None:
        """The next attempt to make; None when there will be none."""
        while True:
            stopping = self._stopping.is_set()
            if self._pace.early:
                # Another thread takes the turn while the slots go on: the one that keeps house.
                if self._low() and not self.news.is_set():
                    self.news.set()
            elif self._waited():
                self._try_turn(claim=not (stopping or self._dry) and self._pace.low(len(self._ready)))
            if not stopping and (attempt := self._pop()) is not None:
                if self._unwatched:
                    # What has finished must not wait for this attempt to end; without one, a slot takes the turn.
                    self._unwatched = False
                    self.news.set()
                attempt.started = monotonic()
                if self._still_mine(attempt):
                    return attempt
                self._finish(attempt, Lost())
            elif not self._try_turn(claim=not stopping) and (stopping or not self._ready):
                if self._over():
                    return None
                self._rest()

    def _still_mine(self, attempt: Attempt) -> bool:
        """Whether a claimed job is worth starting: one that has waited long has its lease renewed first."""
        if attempt.started < attempt.deadline - attempt.lease_s / 2 or self._options.bounded:
            return True
        try:
            return self._heart.beat(attempt)
        except LedgerError:
            return False  # whether the lease holds is not known, and the ledger's return is awaited elsewhere

    def _pop(self) -> Attempt | None:
        try:
            return self._ready.popleft()
        except IndexError:
            return None

    def _over(self) -> bool:
        if self._finished:
            return False
        return self._stopping.is_set() or self._turns.over

    def _finish(self, attempt: Attempt, verdict: Verdict) -> None:
        finished_at = monotonic()
        self._finished.append((attempt, verdict, finished_at - attempt.started))
        if (
            len(self._finished) == 1
        ):  # two slots at once may both see two: the housekeeper looks again by itself
            self._first_finish = finished_at
            self._unwatched = True
        if self._resting and not self._turning.locked():  # the end of a turn wakes a slot anyway
            with self._changed:
                self._changed.notify()

    def _low(self) -> bool:
        """Whether it is time to claim more, although there is still something to start."""
        ready = len(self._ready)
        return ready > 0 and self._pace.early and self._pace.low(ready) and not (self._dry or self.stopping)

    def _waits_until(self) -> float:
        return self._first_finish + self._pace.flush_s

    def _waited(self) -> bool:
        return bool(self._finished) and monotonic() >= self._waits_until()

    def _rest(self) -> None:
        """Wait until there may be something to do: one slot watches the ledger, the others wait for it."""
        outage_s = self._resume_at - monotonic()
        if outage_s > 0:
            time.sleep(min(outage_s, SLICE_S))
            return
        nothing_to_claim = self._dry or not self._turns.may_claim or self.stopping
        if (
            self._dry
            and self._turns.may_claim
            and not self.stopping
            and self._watching.acquire(blocking=False)
        ):
            try:
                self._watch()
            finally:
                self._watching.release()
            return
        with self._changed:
            self._resting += 1
            # While another slot takes a turn, what has finished waits for its end.
            if not self._ready and (self._turning.locked() or (nothing_to_claim and not self._finished)):
                self._changed.wait(SLICE_S)
            self._resting -= 1

    def _watch(self) -> None:
        """Sleep until the ledger may have something for a claim, or a turn was taken meanwhile."""
        until, turn = monotonic() + self._nap_s(), self._turn_count
        while not self.stopping and turn == self._turn_count and (left_s := until - monotonic()) > 0:
            try:
                if self._ledger.wait(min(left_s, SLICE_S)):
                    break
            except LedgerError as error:
                self._outage(error)
                break
        self._dry = False

    def _nap_s(self) -> float:
        """Until the next instant at which a claim could find something; a wake-up may come sooner."""
        if self._options.now_ms is not None:
            return POLL_S
        try:
            due_ms = self._ledger.next_due_ms(queues=self._options.queues, effects=tuple(self._effects))
            now_ms = self._ledger.now_ms()
        except LedgerError as error:
            self._outage(error)
            return MIN_NAP_S
        return POLL_S if due_ms is None else min(max((due_ms - now_ms) / 1_000, MIN_NAP_S), POLL_S)

    # -- turns --

    def _try_turn(self, *, claim: bool) -> bool:
        """Take a turn unless another slot is at it; True if it brought something to do."""
        if monotonic() < self._resume_at or not self._turning.acquire(blocking=False):
            return False
        try:
            return self._turn(claim=claim)
        finally:
            self._turning.release()
            if self._resting:
                with self._changed:
                    self._changed.notify_all() if self._turns.over or self.stopping else self._changed.notify()

    def _turn(self, *, claim: bool) -> bool:
        self._unwatched = False  # before the batch is taken: what finishes from here on says so by itself
        batch = [self._finished.popleft() for _ in range(len(self._finished))]
        if self._finished:
            self._first_finish = monotonic()
            self._unwatched = True
        if not batch and (self._dry or not claim or not self._turns.may_claim):
            return False
        self._turn_count += 1
        began = monotonic()
        try:
            claimed = self._turns.take(batch, claim=claim, waiting=len(self._ready))
        except (LedgerBusy, LedgerFailed) as error:
            self._finished.extendleft(reversed(batch))
            self._unwatched = True
            self._outage(error)
            return False
        if self._outages:
            _log.info("the ledger is back after %d tries", self._outages)
            self._outages = 0
        self._pace.turned(monotonic() - began)
        self._healthy()
        if self._turns.fault is not None:
            self.fail(self._turns.fault)
        self._dry = self._turns.looked and not claimed
        self._admit(claimed)
        self._mark_idle(not self._dry or self._turns.outstanding > 0)
        return bool(claimed)

    def _admit(self, claimed: list[Attempt]) -> None:
        """Read what the claimed jobs need, and let the slots have them."""
        if not claimed:
            return
        if not self._options.delay_ms:
            self._turns.load(claimed)
        self._ready.extend(claimed)
        if self._resting:
            with self._changed:
                self._changed.notify(len(claimed))

    def _mark_idle(self, busy: bool) -> None:
        if busy:
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = monotonic()
            if not self._looked_for_others:
                self._looked_for_others = True
                self._turns.report_others()

    def _outage(self, error: LedgerError) -> None:
        """The ledger cannot be used now: a following worker says so once, and tries again after a growing nap."""
        if self._options.bounded or isinstance(error, GONE):
            raise error
        self.idle_since = None  # there may be work that cannot be seen now
        if not self._outages:
            _log.error("the ledger cannot be used; claiming nothing until it can: %s", error)
        self._outages += 1
        self._resume_at = monotonic() + outage_nap_s(self._outages)

    # -- an attempt --

    def _perform(self, attempt: Attempt) -> Verdict:
        if self._options.delay_ms:
            time.sleep(self._options.delay_ms / 1_000)
        if attempt.input is None and (fault := self._load_late(attempt)) is not None:
            return fault
        if not attempt.effect.pure:
            attempt.request = self._request(attempt)
        if self._options.now_ms is None:
            self._heart.add(attempt)
        try:
            return perform(attempt, self)
        finally:
            self._heart.remove(attempt)

    def _load_late(self, attempt: Attempt) -> Verdict | None:
        """Read what the job needs now; a following worker tries until the lease ends."""
        while True:
            try:
                self._turns.read([attempt])
            except LedgerCorrupt as error:
                return Broken(error)
            except (LedgerBusy, LedgerFailed):
                if self._options.bounded:
                    raise
                if monotonic() >= attempt.deadline or self._stopping.wait(SLICE_S):
                    return Lost()
            else:
                return None

    def _request(self, attempt: Attempt) -> EffectRequest:
        job, found = attempt.job, attempt.input
        assert found is not None, "the input is read before the request is made"
        return EffectRequest(
            id=job.id,
            text=found.text,
            attempt=job.attempts,
            fence=job.version,
            effect=job.effect,
            namespace=attempt.effect.namespace,
            deadline=attempt.deadline,
            extend=lambda request: self(attempt),
            logger=self._logs[job.effect],
            first_claimed_at_ms=job.first_claimed_at_ms,
            now_ms=job.claimed_at_ms,
        )

    def __call__(self, attempt: Attempt) -> None:
        """Renew the attempt's lease now; a ledger that cannot be reached is asked again until the lease ends."""
        while not attempt.lost:
            try:
                if self._heart.beat(attempt):
                    return
            except (LedgerBusy, LedgerFailed) as error:
                if isinstance(error, GONE) or monotonic() >= attempt.deadline:
                    attempt.lose()
                else:
                    time.sleep(attempt.retry_s)
        raise LeaseLost(f"the claim {attempt.job.version} of job {attempt.job.id!r} no longer holds")

    def begin(self, attempt: Attempt) -> None:
        """Record that the attempt of a ``once`` effect starts."""
        job = attempt.job
        if not self._ledger.begin(job.id, job.version, now_ms=self._options.now_ms):
            attempt.lose()
            raise LeaseLost(f"the claim {job.version} of job {job.id!r} no longer holds")
