"""The slots: threads that make the attempts, and do nothing else."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from time import monotonic
from typing import NoReturn

from ..errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerFailed
from ..ledgers.protocol import Ledger
from ..model.effect import EffectRequest
from .attempt import Attempt, Broken, Finished, Lost, Verdict, perform
from .context import CURRENT_JOB
from .heartbeat import Heartbeats
from .lease import RETRY_S
from .options import WorkerOptions
from .work import Finish, Work

_log = logging.getLogger("fencepost.worker")


class Slots:
    """``concurrency`` threads; each takes an attempt, makes it, and hands it back.

    A bounded worker with one slot needs no thread for it: the dispatcher, which would only wait, calls ``make`` itself.
    A hand-over to a thread and back costs a quarter of such a worker's time for a job.
    """

    def __init__(
        self,
        ledger: Ledger,
        options: WorkerOptions,
        work: Work,
        heartbeats: Heartbeats,
        *,
        stopping: Callable[[], bool],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._work = work
        self._heartbeats = heartbeats
        self._stopping = stopping
        self._failed = failed
        self._pid = os.getpid()
        self._threads = [
            threading.Thread(target=self._run, name=f"fencepost-slot-{number}", daemon=True)
            for number in range(0 if options.inline else options.concurrency)
        ]

    def start(self) -> None:
        """Start every thread."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let every thread end once it has nothing left to make."""
        self._work.end(len(self._threads))

    def make(self, attempt: Attempt) -> None:
        """Make the attempt in this thread, and hand it back."""
        attempt.started = monotonic()
        outside = CURRENT_JOB.set(attempt.job)
        verdict = self._verdict(attempt) if self._is_worth_starting(attempt) else Lost()
        CURRENT_JOB.reset(outside)
        if os.getpid() != self._pid:
            _end_child(verdict)
        self._work.put(Finish(attempt, verdict, monotonic()))

    def _run(self) -> None:
        try:
            while (attempt := self._work.get()) is not None:
                self.make(attempt)
        except BaseException as error:  # noqa: BLE001 - whatever ends a slot must end the worker, and be seen
            self._failed(error)

    def _is_worth_starting(self, attempt: Attempt) -> bool:
        """Whether the lease holds; that of a job which has waited long is renewed first."""
        lease = attempt.lease
        if attempt.started < lease.deadline - lease.length_s / 2 or self._options.bounded:
            return True
        try:
            return self._heartbeats.beat(lease)
        except LedgerError:
            return False  # whether the lease is valid is not known, and the dispatcher waits for the ledger

    def _verdict(self, attempt: Attempt) -> Verdict:
        if self._options.delay_ms:
            time.sleep(self._options.delay_ms / 1_000)
        if attempt.input is None and (fault := self._read(attempt)) is not None:
            return fault
        if self._heartbeats.stopped:
            return Lost()  # the worker has ended meanwhile, and nobody would keep the lease
        if not attempt.effect.pure:
            attempt.request = attempt.lease.request = self._request(attempt)
        if self._options.now_ms is not None:  # a logical clock, on which no lease can be renewed in time
            return perform(attempt, self._heartbeats)
        self._heartbeats.add(attempt.lease)
        try:
            return perform(attempt, self._heartbeats)
        finally:
            self._heartbeats.remove(attempt.lease)

    def _read(self, attempt: Attempt) -> Verdict | None:
        """Read what the dispatcher did not; a following worker tries until the lease ends."""
        while True:
            try:
                read(self._ledger, [attempt])
            except LedgerCorrupt as error:
                return Broken(error)
            except (LedgerBusy, LedgerFailed) as error:
                if self._options.bounded:
                    return Broken(error)  # the worker ends with this error
                if monotonic() >= attempt.lease.deadline or self._stopping():
                    return Lost()
                time.sleep(RETRY_S)
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
            deadline=attempt.lease.deadline,
            extend=lambda request: self._heartbeats.renew(attempt.lease),
            logger=_log.getChild(job.effect),
            first_claimed_at_ms=job.first_claimed_at_ms,
            now_ms=job.claimed_at_ms,
        )


def _end_child(verdict: Verdict) -> NoReturn:
    """End a child that an effect has forked and that returns from the effect: the worker is its parent alone.

    It must not report the attempt a second time, nor claim jobs of its own.
    """
    os._exit(0 if isinstance(verdict, Finished) else 1)


def read(ledger: Ledger, attempts: list[Attempt]) -> None:
    """Read the inputs and receipts of claimed jobs into their attempts.

    Raises:
        LedgerError: one of them cannot be read; no attempt was changed.
    """
    ids = [attempt.job.id for attempt in attempts]
    inputs, receipts = ledger.read_inputs(ids), ledger.receipts(ids)
    if missing := [id for id in ids if id not in inputs]:
        raise LedgerCorrupt(f"{ledger.location}: the job {missing[0]!r} has no input")
    for attempt in attempts:
        attempt.stored = receipts.get(attempt.job.id)
        attempt.input = inputs[attempt.job.id]
