"""Plays one row of the crash matrix with jobs in ledgers of their own, and says what was seen.

Clocks are logical: a successor starts at the instant at which its predecessor's lease has ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...core.ledgers.open import open_ledger
from ...core.model.documents import JSON
from ...core.model.inputs import NewJob
from ...core.model.job import (
    COMPLETED,
    DEAD,
    HELD,
    Job,
)
from .points import Stop
from .processes import KitFailed, WorkerHost, WorkerProcess
from .subject import Subject

START_MS: Final = 1_000
LEASE_MS: Final = 60_000
MAX_ATTEMPTS: Final = 10
MAX_ROUNDS: Final = 12
"""How many successors are started before a job counts as one that never ends."""
DURABLE_WITHIN_S: Final = 1.0
"""How long the outside world may take to show what an effect has returned, while its worker is dead already."""


@dataclass(slots=True)
class Played:
    """What was seen of one row."""

    seen: int | None
    """How often the outside world saw the effect; None where it is not asked."""
    state: str
    error: str | None
    outcome: Mapping[str, JSON] | None
    """The receipt's."""
    reports: list[dict[str, Any]] = field(default_factory=list)
    """What the workers reported, in the order in which they ended."""
    jobs: int = 1
    """How many jobs there were, each of which the outside world must see once."""
    seen_at_return: int | None = None
    """How often the outside world had seen it when the effect had returned and its worker was killed."""

    def answers(self) -> list[str]:
        """What ``effect_reconcile`` answered, in order."""
        return [report["asked"] for report in self.reports if "asked" in report]

    def outcomes(self) -> list[Any]:
        """What each application of the effect returned, in order."""
        return [report["applied"] for report in self.reports if "applied" in report]

    def marks(self) -> list[str]:
        """The marks that the effect passed, each once, in order."""
        return list(dict.fromkeys(report["mark"] for report in self.reports if "mark" in report))

    def steps(self, kind: str) -> list[str]:
        """The steps of that kind, in order: what each of them is."""
        return [report["what"] for report in self.reports if report.get("step") == kind]

    def conflict(self) -> str | None:
        """The message of a receipt that was not what it should have been."""
        return next((r["message"] for r in self.reports if r.get("error") == "ReceiptConflict"), None)

    def went_on(self) -> bool:
        """Whether an effect returned an outcome although its heartbeat had been refused."""
        return any("swallowed" in report for report in self.reports)


class Scenario:
    """One job (or two), a ledger, several workers. Each method plays one kind of row, once."""

    def __init__(
        self, host: WorkerHost, subject: Subject, *, id: str, store: str, quiet_s: float = 5.0
    ) -> None:
        self._host = host
        self._subject = subject
        self._ids = [id]
        self._store = store
        self._quiet_s = quiet_s
        """How long a successor may report nothing before it counts as waiting for its predecessor."""
        self._now_ms = START_MS
        self._max_attempts = MAX_ATTEMPTS
        self._reports: list[dict[str, Any]] = []
        self._seen_before = self._observed()
        self.took_s = 0.0
        """How long an undisturbed worker took."""

    # -- the kinds of rows --

    def undisturbed(self) -> Played:
        """Let one worker do the job, and follow it through its steps."""
        self._enqueue()
        with self._start(follow=True) as worker:
            began = time.monotonic()
            self._collect(worker)
            self.took_s = time.monotonic() - began
        return self._finished()

    def disturbed(self, stop: Stop) -> Played:
        """Kill the first worker, or give it a fault, and let successors finish the job."""
        self._enqueue()
        self._disturb(stop)
        return self._finished()

    def killed_after_return(self, stop: Stop) -> Played:
        """Kill the first worker when its effect has returned, and look what the outside world has seen of it."""
        self._enqueue()
        self._disturb(stop)
        until = time.monotonic() + DURABLE_WITHIN_S
        while (seen := self._difference()) == 0 and time.monotonic() < until:
            time.sleep(0.02)
        played = self._finished()
        played.seen_at_return = seen
        return played

    def overtaken(self, stop: Stop) -> Played:
        """Stall the first worker until a successor has done the job, or waits for the first one; let it go on."""
        self._enqueue()
        with self._start(stop) as first:
            self._must_reach(first, stop)
            self._now_ms += LEASE_MS
            with self._start(follow=True) as second:
                second.until_quiet(self._quiet_s)
                first.go_on()
                self._collect(second)
            self._collect(first)
        return self._finished()

    def together(self, stop: Stop) -> Played:
        """Stall two workers right before the effect, and let them go on at once."""
        self._enqueue()
        with self._start(stop) as first:
            self._must_reach(first, stop)
            self._now_ms += LEASE_MS
            with self._start(stop) as second:
                there = second.until_reached()  # not if its effect may not be tried again
                first.go_on()
                if there:
                    second.go_on()
                self._collect(second)
            self._collect(first)
        return self._finished()

    def late(self, stop: Stop) -> Played:
        """Stall the first worker until its lease has ended; let it go on, and only then successors."""
        self._enqueue()
        with self._start(stop) as first:
            self._must_reach(first, stop)
            first.go_on()
            self._collect(first)
        return self._finished()

    def delivered_again(self) -> Played:
        """Enqueue the job again when it is done, and let a worker look for work."""
        self._enqueue()
        self._work()
        self._finish()
        self._enqueue()
        self._work()
        return self._finished()

    def redriven(self, stop: Stop) -> Played:
        """Kill the worker in the job's last attempt, and let an operator give the job another life."""
        self._max_attempts = 1
        self._enqueue()
        self._disturb(stop)
        self._finish()
        self._max_attempts = MAX_ATTEMPTS
        with open_ledger(self._store) as ledger:
            if not ledger.redrive(self._ids[0], now_ms=self._now_ms):
                ledger.resolve(self._ids[0], decision="retry", now_ms=self._now_ms)
        return self._finished()

    def silent(self, stop: Stop) -> Played:
        """Kill the first worker; let the receiver be silent for a successor, and answer the next one."""
        self._enqueue()
        self._disturb(stop)
        self._now_ms += LEASE_MS
        self._work(unknown=True)
        return self._finished()

    def asked(self, stop: Stop, fault: Stop | None) -> Played:
        """Kill the first worker; give a fault to the successor that asks the receiver, if any."""
        self._enqueue()
        self._disturb(stop)
        self._now_ms += LEASE_MS
        before = len(self._reports)
        self._work(stop=fault, follow=True)
        questions = self._reports[before:]
        played = self._finished()
        played.reports = questions if fault is None else played.reports
        return played

    def two_jobs(self, other_id: str, *, stop: Stop | None = None, at_once: bool = False) -> Played:
        """Let one worker do two jobs, in turn, or at once: then the first one waits at ``stop`` for the other."""
        self._ids.append(other_id)
        self._enqueue()
        self._work(stop=stop, jobs=2, at_once=2 if at_once else 1, follow=True, lines=True)
        return self._finished()

    def apart(self, other_id: str) -> Played:
        """Let two workers do a job each."""
        self._ids.append(other_id)
        self._enqueue()
        self._work()
        self._work()
        return self._finished()

    def other_namespace(self, settings: Mapping[str, Any], store: str) -> Played:
        """Do the same job in two ledgers, in the second one with other settings."""
        self._enqueue()
        self._work()
        first = self._finish()[0]
        if first.state == COMPLETED:
            self._subject, self._store = replace(self._subject, settings=settings), store
            self._enqueue()
            self._work()
        played = self._finished()
        played.jobs = 2
        return played

    def faulted(self, stop: Stop) -> tuple[Job, Played]:
        """Raise a fault in the effect's place: the job right after it, and in the end."""
        self._enqueue()
        self._disturb(stop)
        job = self._jobs()[0]
        return job, self._finished()

    def outcomes(self) -> list[Mapping[str, JSON] | None]:
        """The outcomes of the receipts, job by job."""
        with open_ledger(self._store) as ledger:
            receipts = ledger.receipts(self._ids)
        return [receipts[id].outcome if id in receipts else None for id in self._ids]

    def repeated(self) -> list[Any]:
        """What the effect, in a new process for each job, says when it is asked for the same job again."""
        answers = []
        for id, text in zip(self._ids, self._texts(), strict=True):
            before = len(self._reports)
            self._work(again={"id": id, "text": text})
            answers.append(next((r["again"] for r in self._reports[before:] if "again" in r), None))
        return answers

    # -- their parts --

    def _disturb(self, stop: Stop) -> None:
        with self._start(stop) as first:
            reached = first.until_reached() if stop.how == "kill" else True
            self._collect(first)
        if not reached:
            self._never_came(stop)

    def _must_reach(self, worker: WorkerProcess, stop: Stop) -> None:
        if not worker.until_reached():
            self._collect(worker)
            self._never_came(stop)

    def _never_came(self, stop: Stop) -> None:
        raise NotReached(
            f"the worker never came to the point{'' if stop.at is None else f' {stop.at!r}'}: "
            f"{self._reports[-1] if self._reports else 'it did nothing'}"
        )

    def _finished(self) -> Played:
        jobs = self._finish()
        worst = next((job for job in jobs if job.state != COMPLETED), jobs[0])
        return Played(
            seen=self._difference(),
            state=worst.state,
            error=worst.last_error,
            outcome=self.outcomes()[0],
            reports=self._reports,
            jobs=len(jobs),
        )

    def _finish(self) -> list[Job]:
        for _ in range(MAX_ROUNDS):
            jobs = self._jobs()
            if all(job.state in (COMPLETED, DEAD, HELD) for job in jobs) or self._in_conflict():
                break
            with open_ledger(self._store) as ledger:
                self._now_ms = max(self._now_ms, ledger.next_due_ms() or 0)
            self._work(jobs=len(jobs))
        return self._jobs()

    def _jobs(self) -> list[Job]:
        with open_ledger(self._store) as ledger:
            jobs = [ledger.get_job(id) for id in self._ids]
        assert all(jobs), "the scenario has enqueued them"
        return [job for job in jobs if job is not None]

    def _in_conflict(self) -> bool:
        return any(report.get("error") == "ReceiptConflict" for report in self._reports)

    def _work(self, stop: Stop | None = None, **options: Any) -> None:
        with self._start(stop, **options) as worker:
            self._collect(worker)

    def _start(
        self,
        stop: Stop | None = None,
        *,
        unknown: bool = False,
        jobs: int = 1,
        at_once: int = 1,
        follow: bool = False,
        lines: bool = False,
        again: Mapping[str, str] | None = None,
    ) -> WorkerProcess:
        return WorkerProcess(
            self._host,
            {
                **self._subject.orders(),
                "store": self._store,
                "claimant": f"crash-kit-{self._now_ms}",
                "lease_ms": LEASE_MS,
                "max_attempts": self._max_attempts,
                "now_ms": self._now_ms,
                "stop": None if stop is None else stop._asdict(),
                "unknown": unknown,
                "jobs": jobs,
                "at_once": at_once,
                "follow": follow
                or (
                    stop is not None
                    and stop.where in ("call", "answer", "expected", "connection", "received")
                ),
                "lines": lines,
                "again": again,
                "quiet_s": self._quiet_s,
            },
        )

    def _collect(self, worker: WorkerProcess) -> None:
        reports = worker.end()
        self._reports += reports
        for report in reports:
            if "error" in report and report["error"] not in ("LeaseLost", "ReceiptConflict"):
                raise KitFailed(report["message"])

    def _enqueue(self) -> None:
        jobs = [
            NewJob(id, text, effect=self._subject.effect)
            for id, text in zip(self._ids, self._texts(), strict=True)
        ]
        with open_ledger(self._store) as ledger:
            ledger.enqueue(jobs, now_ms=START_MS)

    def _texts(self) -> Sequence[str]:
        return [self._subject.text, self._subject.other_text][: len(self._ids)]

    def _difference(self) -> int | None:
        now = self._observed()
        return None if now is None or self._seen_before is None else now - self._seen_before

    def _observed(self) -> int | None:
        if self._subject.observed is None:
            return None
        seen = self._subject.observed()
        if type(seen) is not int:
            raise KitFailed(f"observed() returned {seen!r}; it must return a whole number")
        return seen


class NotReached(KitFailed):
    """The worker ended without coming to the point at which it was to be stopped."""
