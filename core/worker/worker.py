"""The worker: claim → effect → receipt → complete, over and over.

The thread that calls ``run`` is the dispatcher (``dispatch.py``): it alone asks the ledger to settle and to claim.
Slots (``slots.py``) make the attempts. Heartbeats (``heartbeat.py``), the wait for the ledger (``watch.py``) and
maintenance (``maintenance.py``) have threads of their own. docs/explanation/worker.md has the picture.

The order that finishes a job exactly once: the receipt is durable first, then the completion asks for the current
fence inside the lease. A worker that dies between the two leaves a receipt, which the next claim finds and reuses;
one that comes late finds its completion refused, and says so instead of reporting success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import FencepostError
from ..ledgers.protocol import Ledger
from ..model.effect import Effect
from ..model.events import Event, NoObservers, Observers
from .dispatch import Dispatcher
from .heartbeat import Heartbeats
from .maintenance import Maintenance
from .options import WorkerOptions
from .settle import CrashHook, Settler
from .slots import Slots
from .watch import LedgerWatch
from .work import Wake, Work


class Worker:
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
        self._store = ledger.location
        self._effects = dict(effects)
        self._options = options
        self._observers = NoObservers() if observers is None else observers
        self._wake = Wake()
        self._is_stopping = False
        """Written by any thread, and by signal handlers; never taken back."""
        self._fault: BaseException | None = None
        """Written by the first thread that fails."""
        work = Work(self._wake)
        heartbeats = Heartbeats(ledger, now_ms=options.now_ms, timeout_s=options.timeout_s, failed=self.fail)
        watch = LedgerWatch(ledger, tuple(self._effects), options, wake=self._wake.set, failed=self.fail)
        self._maintenance = Maintenance(ledger, options, failed=self.fail)
        self._slots = Slots(
            ledger, options, work, heartbeats, stopping=lambda: self._is_stopping, failed=self.fail
        )
        self._heartbeats = heartbeats
        self._watch = watch
        self._dispatcher = Dispatcher(
            ledger,
            self._effects,
            options,
            work=work,
            slots=self._slots,
            settler=Settler(ledger, options, tell=on_event, observers=self._observers, crash=crash),
            heartbeats=heartbeats,
            watch=watch,
            observers=self._observers,
            crash=crash,
            stopping=lambda: self._is_stopping,
            stop=self.stop,
            healthy=healthy,
        )

    def run(self) -> None:
        """Work until the bound is reached, or until ``stop``; can be called once.

        Every thread is there before the first claim, so that a start which fails costs no job an attempt.

        Raises:
            LeaseLost: bounded only: a completion was refused.
            ReceiptConflict, LedgerCorrupt: bounded only: a promise is broken; the job is left as it is.
            LedgerError: the ledger cannot be used (a following worker waits for it, where that can help).
        """
        claimant = self._options.claimant
        self._observers.worker_started(claimant, self._store, tuple(self._effects))
        try:
            self._start()
            self._dispatcher.run()
        except BaseException as error:  # noqa: BLE001 - raised below, or the fault that came first
            self.fail(error)
        finally:
            self._slots.end()
            self._maintenance.stop()
            self._watch.stop()
            self._heartbeats.stop()
            fault = self._fault or self._dispatcher.fault
            self._observers.worker_stopped(claimant, self._store, None if fault is None else str(fault))
        if fault is not None:
            raise fault

    def _start(self) -> None:
        """Start every thread.

        Raises:
            FencepostError: the system gives no more threads.
        """
        try:
            self._heartbeats.start()
            self._watch.start()
            if not self._options.bounded:
                self._maintenance.start()
            self._slots.start()
        except RuntimeError as error:  # what Python raises for a thread that cannot be had
            raise FencepostError(
                f"the worker cannot start, nothing was claimed: {error}. It needs {self._options.concurrency} threads "
                "for its attempts and a few of its own: lower --concurrency, or raise the limits of memory and of "
                "threads (ulimit -v, ulimit -u, the container's)"
            ) from error

    def stop(self) -> None:
        """Claim nothing more, hand back what has not started, let running attempts finish. Safe in a signal."""
        self._is_stopping = True
        self._wake.set()

    @property
    def stopping(self) -> bool:
        """Whether the worker was asked to stop, or has to."""
        return self._is_stopping

    @property
    def idle_since(self) -> float | None:
        """The ``time.monotonic()`` second since which there has been nothing to do; None while there is."""
        return self._dispatcher.idle_since

    @property
    def outages(self) -> int:
        """How often in a row the ledger could not be used; 0 when it answers."""
        return self._dispatcher.outages

    def fail(self, error: BaseException) -> None:
        """Stop, and have ``run`` raise this error, unless there was one before."""
        if self._fault is None:
            self._fault = error
        self.stop()
