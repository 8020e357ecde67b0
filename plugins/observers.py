"""Tells plugins what happened. A plugin that fails is logged and cannot stop the work."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from pluggy import HookImpl

from ..core.model.inputs import NewJob
from ..core.model.job import Job
from ..core.model.receipts import Receipt
from .bound_effect import bind
from .rules import OBSERVERS, is_fault

_log = logging.getLogger("fencepost.plugins")


class Observers:
    """One method for each observer hook: it tells every plugin that has that hook, and costs nothing else.

    A plugin that raises is logged, and the next one is told.
    """

    def __init__(self, plugins: Iterable[tuple[str, object]] = ()) -> None:
        told: dict[str, list[tuple[str, HookImpl]]] = {hook: [] for hook in OBSERVERS}
        for name, plugin in plugins:
            relay = bind(plugin).hook
            for hook in OBSERVERS:
                told[hook] += [
                    (name, implementation) for implementation in getattr(relay, hook).get_hookimpls()
                ]
        self._told = {hook: tuple(implementations) for hook, implementations in told.items()}
        self._claimed = self._told["job_claimed"]
        self._completed = self._told["job_completed"]

    def job_enqueued(self, job: NewJob, created: bool) -> None:
        """A record was stored."""
        self._tell("job_enqueued", job=job, created=created)

    def job_claimed(self, job: Job) -> None:
        """A worker took the job."""
        if self._claimed:
            self._tell("job_claimed", job=job)

    def job_completed(self, job: Job, receipt: Receipt, reused: bool) -> None:
        """The job is done."""
        if self._completed:
            self._tell("job_completed", job=job, receipt=receipt, reused=reused)

    def job_retried(self, job: Job, error: str, run_at_ms: int | None) -> None:
        """An attempt failed; another one will follow."""
        self._tell("job_retried", job=job, error=error, run_at_ms=run_at_ms)

    def job_dead(self, job: Job, error: str) -> None:
        """The job is dead."""
        self._tell("job_dead", job=job, error=error)

    def job_held(self, job: Job, error: str) -> None:
        """The job waits for an operator."""
        self._tell("job_held", job=job, error=error)

    def job_lost(self, job: Job) -> None:
        """The claim no longer holds."""
        self._tell("job_lost", job=job)

    def worker_started(self, claimant: str, store: str, effects: tuple[str, ...]) -> None:
        """A worker begins."""
        self._tell("worker_started", claimant=claimant, store=store, effects=effects)

    def worker_stopped(self, claimant: str, store: str, error: str | None) -> None:
        """A worker has ended."""
        self._tell("worker_stopped", claimant=claimant, store=store, error=error)

    def _tell(self, hook: str, **what: Any) -> None:
        for name, implementation in self._told[hook]:
            try:
                implementation.function(*(what[argument] for argument in implementation.argnames))
            except BaseException as error:  # an observer's fault is its own, the job goes on
                if not is_fault(error):
                    raise
                _log.exception("the plugin %r failed in %s; the job goes on", name, hook)
