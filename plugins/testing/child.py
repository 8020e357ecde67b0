"""A real worker process that makes one attempt (or one at each of two jobs), and is stopped or given faults on the way.

It reads its orders as JSON from stdin and reports each thing that happens as a line of JSON; what the effect itself
prints goes to stderr. Forked by ``host.py``; nothing of use to anybody else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any, Final, cast

from ...core.errors import FencepostError, Hold, LeaseLost, Reject, Retry
from ...core.ledgers.open import open_ledger
from ...core.ledgers.protocol import Ledger
from ...core.model.documents import JSON
from ...core.model.effect import (
    Applied,
    Effect,
    EffectInfo,
    EffectRequest,
    Reconciled,
    Unknown,
)
from ...core.model.events import Event
from ...core.model.job import ClaimRequest, Job
from ...core.model.receipts import Settled, Settlement
from ...core.worker.options import WorkerOptions
from ...core.worker.worker import Worker
from .. import hookimpl
from .requests import make_request
from .steps import Author, followed
from .subject import load_subject

FAULT: Final = "the crash kit's fault"
"""Part of the message of every fault that the kit raises; an error that is passed on still has it."""
FIRST_JOB_COMES_S: Final = 20.0
"""How long the second job is kept before its effect until the first one is at the line where it waits."""
OTHER_JOB_BEGINS_S: Final = 5.0
"""How long an effect waits for the other job of its worker to begin."""
OTHER_JOB_ENDS_S: Final = 0.5
"""How long an effect waits at least for that job to end, so that a busy machine hides no fault."""
FAULTS: Final[Mapping[str, Callable[[], BaseException]]] = {
    "time-out": lambda: TimeoutError(f"no answer in time ({FAULT})"),
    "reset": lambda: ConnectionResetError(f"the connection broke off ({FAULT})"),
    "refused": lambda: ConnectionRefusedError(f"no connection ({FAULT})"),
    "error": lambda: TimeoutError(f"no answer in time ({FAULT})"),
    "retry": lambda: Retry(f"busy ({FAULT})", after_s=7),
    "reject": lambda: Reject(f"never ({FAULT})"),
    "hold": lambda: Hold(f"ask somebody ({FAULT})"),
    "lease-lost": lambda: LeaseLost(f"another attempt has it ({FAULT})"),
}


class Stops:
    """Stops the process where its orders say, or raises the fault that they name, and reports on the way."""

    def __init__(self, orders: Mapping[str, Any], orders_in: IO[str], report_out: IO[str]) -> None:
        stop = orders["stop"] or {"where": None, "at": None, "how": "kill"}
        self.where: str | None = stop["where"]
        self._at: str | int | None = stop["at"]
        self._how: str = stop["how"]
        self._quiet_s: float = orders["quiet_s"]
        self._in = orders_in
        self._out = report_out
        self._reporting = threading.Lock()
        self.waits: bool = self._how == "wait"
        """Whether the first of two jobs waits at its moment until the other one has passed."""
        self.first_there = threading.Event()
        """Set when the first of two jobs waits at its moment, or has ended without coming there."""
        self.other_began = threading.Event()
        self.other_ended = threading.Event()
        self.overtaken = False
        """Whether this process has stalled until its lease had ended."""

    def report(self, **what: object) -> None:
        """One line for the parent."""
        with self._reporting:
            self._out.write(json.dumps(what) + "\n")
            self._out.flush()

    def reach(self, where: str, at: str | int | None = None) -> None:
        """Stop, or raise the fault, if the orders name this moment. It happens once, in the first thread that comes."""
        if where != self.where or at != self._at:
            return
        self.where = None
        if self._how == "kill":
            self.report(reached=where)
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._how == "stall":
            self.report(reached=where)
            self._in.readline()
            self.overtaken = True
        elif self._how == "wait":
            self.report(waited=where)
            self.first_there.set()
            if self.other_began.wait(OTHER_JOB_BEGINS_S):
                self.other_ended.wait(
                    max(OTHER_JOB_ENDS_S, self._quiet_s)
                )  # it may itself have to wait for this one
        else:
            self.report(raised=where)
            raise FAULTS[self._how]()


class Inside:
    """The innermost middleware: the moments right before and after the effect's own code, and its steps."""

    def __init__(self, stops: Stops, orders: Mapping[str, Any]) -> None:
        self._stops = stops
        self._follow: bool = orders["follow"]
        self._lines: bool = orders["lines"]
        self._author: Author | None = None
        self._first: int | None = None
        """The thread of the job that came first."""
        self._coming = threading.Lock()
        self._followed = False
        self.raised: dict[int, BaseException] = {}
        """What the effect itself raised last in each thread."""

    def follow(self, plugin: object) -> None:
        """Set the plugin whose code is followed."""
        self._author = Author(plugin)

    @hookimpl(wrapper=True, trylast=True)
    def effect_outcome(self) -> Generator[None, Any, Any]:
        """The work of a pure effect."""
        return (yield from self._around(None, "before", "returned"))

    @hookimpl(wrapper=True, trylast=True)
    def effect_apply(self, request: EffectRequest) -> Generator[None, Any, Any]:
        """The work of an acting effect."""
        return (yield from self._around(request, "before", "returned"))

    @hookimpl(wrapper=True, trylast=True)
    def effect_reconcile(self, request: EffectRequest) -> Generator[None, Any, Any]:
        """The question to the receiver."""
        return (yield from self._around(request, "asking", "asked"))

    def _around(self, request: EffectRequest | None, before: str, after: str) -> Generator[None, Any, Any]:
        thread = threading.get_ident()
        self.raised.pop(thread, None)
        first = self._comes_first(thread)
        if not first:
            self._stops.other_began.set()
            if self._stops.waits:
                self._stops.first_there.wait(FIRST_JOB_COMES_S)
        try:
            self._stops.reach(before)
            if request is not None:
                if self._stops.overtaken:
                    request.lose()
                request.on_mark = self._marked(request)
            with self._steps(request):
                outcome = yield
            if self._stops.where == after == "returned":
                self._stops.report(applied=outcome)
            self._stops.reach(after)
        except BaseException as error:
            self.raised[thread] = error
            raise
        finally:
            (self._stops.first_there if first else self._stops.other_ended).set()
        return outcome

    def _comes_first(self, thread: int) -> bool:
        with self._coming:
            if self._first is None:
                self._first = thread
            return self._first == thread

    def _steps(self, request: EffectRequest | None) -> AbstractContextManager[None]:
        # Only the first job of a worker is followed: the other one shall pass it without a stop.
        if self._author is None or not self._follow or self._followed or self._first != threading.get_ident():
            return nullcontext()
        self._followed = True

        def reach(kind: str, number: int, what: str) -> None:
            self._stops.report(step=kind, what=what)
            self._stops.reach(kind, number)
            if self._stops.overtaken and request is not None:
                request.lose()

        return followed(self._author, reach, lines=self._lines)

    def _marked(self, request: EffectRequest) -> Callable[[str], None]:
        def marked(name: str) -> None:
            self._stops.report(mark=name)
            self._stops.reach("mark", name)
            if self._stops.overtaken:
                request.lose()

        return marked


class Watched:
    """The effect under test with all its middleware, seen from the worker."""

    def __init__(
        self, effect: Effect, stops: Stops, inside: Inside, ledger: WatchedLedger, *, unknown: bool
    ) -> None:
        self._effect = effect
        self._stops = stops
        self._inside = inside
        self._ledger = ledger
        self._unknown = unknown

    @property
    def info(self) -> EffectInfo:
        """The effect's own."""
        return self._effect.info

    @property
    def pure(self) -> bool:
        """The effect's own."""
        return self._effect.pure

    @property
    def namespace(self) -> str:
        """The effect's own."""
        return self._effect.namespace

    def validate(self, text: str) -> None:
        """Ask the effect."""
        self._effect.validate(text)

    def outcome(self, text: str) -> Mapping[str, JSON]:
        """Ask the effect, and report its answer."""
        outcome = self._effect.outcome(text)
        self._answered(None, outcome)
        return outcome

    def apply(self, request: EffectRequest) -> Mapping[str, JSON]:
        """Let the effect work, and report its answer."""
        outcome = self._effect.apply(request)
        self._answered(request, outcome)
        return outcome

    def reconcile(self, request: EffectRequest) -> Reconciled:
        """Ask the effect, or know nothing where that is ordered."""
        if self._unknown:
            self._stops.report(asked="Unknown")
            return Unknown("the crash kit lets the receiver be silent")
        try:
            answer = self._effect.reconcile(request)
        except BaseException as error:
            self._stops.report(asked=f"{type(error).__name__}: {error}")
            raise
        outcome = dict(answer.outcome) if isinstance(answer, Applied) else None
        self._stops.report(asked=type(answer).__name__, outcome=outcome)
        return answer

    def close(self) -> None:
        """Close the effect."""
        self._effect.close()

    def _answered(self, request: EffectRequest | None, outcome: Mapping[str, JSON]) -> None:
        raised = self._inside.raised.pop(threading.get_ident(), None)
        if raised is not None:
            self._stops.report(hidden=type(raised).__name__)
        if request is not None and (request.id, request.fence) in self._ledger.refused:
            self._stops.report(swallowed="LeaseLost")
        self._stops.report(applied=outcome)
        self._stops.reach("after")


class WatchedLedger:
    """The ledger of the job, with the moments after a claim and after a receipt."""

    def __init__(self, ledger: Ledger, stops: Stops) -> None:
        self._ledger = ledger
        self._stops = stops
        self.refused: set[tuple[str, int]] = set()
        """Claims, by id and fence, whose heartbeat was refused."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def claim(self, request: ClaimRequest, *, now_ms: int | None = None) -> list[Job]:
        """Claim. The moment after it is the first one of an attempt."""
        return self._claimed(self._ledger.claim(request, now_ms=now_ms))

    def settle(self, settlements: Sequence[Settlement], *, now_ms: int | None = None) -> list[Settled]:
        """Settle, with a moment between the receipt and the completion where that is ordered."""
        self._published(settlements)
        return self._ledger.settle(settlements, now_ms=now_ms)

    def settle_and_claim(
        self, settlements: Sequence[Settlement], request: ClaimRequest, *, now_ms: int | None = None
    ) -> tuple[list[Settled], list[Job]]:
        """Settle and claim, with the moments of both."""
        self._published(settlements)
        settled, jobs = self._ledger.settle_and_claim(settlements, request, now_ms=now_ms)
        return settled, self._claimed(jobs)

    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        """Renew, and remember a refusal: the effect must not go on after it."""
        renewed = self._ledger.heartbeat(id, version, extend_ms=extend_ms, now_ms=now_ms)
        if not renewed:
            self.refused.add((id, version))
        return renewed

    def _claimed(self, jobs: list[Job]) -> list[Job]:
        if jobs:
            self._stops.reach("claim")
        return jobs

    def _published(self, settlements: Sequence[Settlement]) -> None:
        if self._stops.where == "receipt":
            for settlement in settlements:
                self._ledger.publish(settlement.receipt)
                self._stops.reach("receipt")


def main() -> None:
    """Work as ordered."""
    orders_in = os.fdopen(os.dup(0), "r", encoding="utf-8")
    report_out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    orders = json.loads(orders_in.readline())
    os.environ.clear()
    os.environ.update(orders["environment"])
    os.chdir(orders["folder"])
    stops = Stops(orders, orders_in, report_out)
    try:
        _work(orders, stops)
    except FencepostError as error:
        stops.report(error=type(error).__name__, message=str(error))
    sys.stderr.flush()


def _work(orders: Mapping[str, Any], stops: Stops) -> None:
    stops.report(worker=orders["claimant"])
    inside = Inside(stops, orders)
    subject = load_subject(orders, around=[inside])
    if orders["again"] is not None:
        try:
            stops.report(again=_again(subject.effect, orders["again"]))
        except Exception as error:  # noqa: BLE001 - an effect may refuse what it has done; then there is no answer
            stops.report(again=None, why=str(error))
        return
    inside.follow(subject.plugin)

    def told(event: Event) -> None:
        stops.report(event=event.document())
        stops.reach("completion")

    options = WorkerOptions(
        claimant=orders["claimant"],
        lease_ms=orders["lease_ms"],
        max_attempts=orders["max_attempts"],
        max_jobs=orders["jobs"],
        concurrency=orders["at_once"],
        now_ms=orders["now_ms"],
        schedules=False,
    )
    with open_ledger(orders["store"]) as ledger:
        watched = WatchedLedger(ledger, stops)
        effect = Watched(subject.effect, stops, inside, watched, unknown=orders["unknown"])
        # The proxy passes on every verb; a checker cannot see that.
        Worker(cast(Ledger, watched), {effect.info.name: effect}, options, on_event=told).run()
    effect.close()


def _again(effect: Effect, job: Mapping[str, str]) -> Any:
    """What the effect says of a job that was done before: what its receiver stored, or what it does again."""
    if effect.pure:
        return dict(effect.outcome(job["text"]))
    request = make_request(
        job["text"], effect=effect.info.name, id=job["id"], attempt=2, fence=1_000, namespace=effect.namespace
    )
    if effect.info.delivery != "probed":
        return dict(effect.apply(request))
    answer = effect.reconcile(request)
    return dict(answer.outcome) if isinstance(answer, Applied) else None
