"""A real worker process that makes one attempt, and is killed, stalled or cheated where it was told to be.

It reads its orders as JSON from stdin and reports each thing that happens as a line of JSON; what the effect itself
prints goes to stderr. Run by ``processes.py``; nothing of use to anybody else.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from typing import IO, Any

from ...core.errors import FencepostError
from ...core.ledgers.open import open_ledger
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
from ...core.model.job import Job
from ...core.worker.options import WorkerOptions
from ...core.worker.worker import Worker
from .scenarios import chosen


class Stops:
    """Stops the process where its orders say, and reports on the way."""

    def __init__(self, orders: Mapping[str, Any], orders_in: IO[str], report_out: IO[str]) -> None:
        self._where: str | None = orders["where"]
        self._mark: str | None = orders["mark"]
        self._how: str = orders["how"]
        self._in = orders_in
        self._out = report_out

    def report(self, **what: object) -> None:
        """One line for the parent."""
        self._out.write(json.dumps(what) + "\n")
        self._out.flush()

    def reach(self, where: str, mark: str | None = None) -> None:
        """Here is one of the moments; act if it is the one."""
        if where != self._where or mark != self._mark:
            return
        self._where = None
        self.report(reached=where)
        if self._how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._how == "stall":
            self._in.readline()
        else:
            raise TimeoutError("the answer did not arrive in time (the crash kit threw it away)")


class Watched:
    """The effect under test, with the moments around it."""

    def __init__(self, effect: Effect, stops: Stops, *, unknown: bool) -> None:
        self._effect = effect
        self._stops = stops
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
        """Ask the effect, with a moment before and after it."""
        self._stops.reach("before")
        outcome = self._effect.outcome(text)
        self._stops.report(applied=dict(outcome))
        self._stops.reach("after")
        return outcome

    def apply(self, request: EffectRequest) -> Mapping[str, JSON]:
        """Let the effect work, with a moment before and after it, and at its marks."""
        request.on_mark = self._marked
        self._stops.reach("before")
        outcome = self._effect.apply(request)
        self._stops.report(applied=outcome)
        self._stops.reach("after")
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

    def _marked(self, name: str) -> None:
        self._stops.report(mark=name)
        self._stops.reach("mark", name)


def main() -> None:
    """Make one attempt as ordered."""
    orders_in = os.fdopen(os.dup(0), "r", encoding="utf-8")
    report_out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    orders = json.loads(orders_in.readline())
    stops = Stops(orders, orders_in, report_out)
    try:
        _work(orders, stops)
    except FencepostError as error:
        stops.report(error=type(error).__name__, message=str(error))


def _work(orders: Mapping[str, Any], stops: Stops) -> None:
    stops.report(worker=orders["claimant"])
    effect = Watched(chosen(orders), stops, unknown=orders["unknown"])

    def moment(name: str, job: Job) -> None:
        stops.reach({"claim": "claim", "effect": "receipt"}[name])

    def told(event: Event) -> None:
        stops.report(event=event.document())
        stops.reach("completion")

    options = WorkerOptions(
        claimant=orders["claimant"],
        lease_ms=orders["lease_ms"],
        max_attempts=orders["max_attempts"],
        max_jobs=1,
        now_ms=orders["now_ms"],
        schedules=False,
    )
    with open_ledger(orders["store"]) as ledger:
        Worker(ledger, {effect.info.name: effect}, options, on_event=told, crash=moment).run()
    effect.close()


if __name__ == "__main__":
    main()
