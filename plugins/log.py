"""An observer that ships: one line in the log for whatever becomes of a job. Use it with ``--plugin log``.

Texts and outcomes are not logged: they may be large, or nobody else's business.
"""

from __future__ import annotations

import logging

from fencepost.plugins import (
    Job,
    NewJob,
    Receipt,
    hookimpl,
)

_log = logging.getLogger("fencepost.jobs")


@hookimpl
def job_enqueued(job: NewJob, created: bool) -> None:
    """A record was stored."""
    _log.info("%s enqueued for %s%s", job.id, job.effect, "" if created else " (was there already)")


@hookimpl
def job_claimed(job: Job) -> None:
    """An attempt begins."""
    _log.info("%s claimed: attempt %d, fence %d", job.id, job.attempts, job.version)


@hookimpl
def job_completed(job: Job, receipt: Receipt, reused: bool) -> None:
    """The job is done."""
    _log.info("%s completed%s", job.id, " with the receipt that was there" if reused else "")


@hookimpl
def job_retried(job: Job, error: str, run_at_ms: int | None) -> None:
    """An attempt failed; another one follows."""
    when = "at once" if run_at_ms is None else f"at {run_at_ms} ms"
    _log.warning("%s failed in attempt %d, again %s: %s", job.id, job.attempts, when, error)


@hookimpl
def job_dead(job: Job, error: str) -> None:
    """No attempt follows."""
    _log.error("%s is dead after attempt %d: %s", job.id, job.attempts, error)


@hookimpl
def job_held(job: Job, error: str) -> None:
    """An operator must decide."""
    _log.error("%s is held for an operator: %s", job.id, error)


@hookimpl
def job_lost(job: Job) -> None:
    """Another attempt has the job, or will."""
    _log.warning("%s: the claim with fence %d is lost", job.id, job.version)


@hookimpl
def worker_started(claimant: str, store: str, effects: tuple[str, ...]) -> None:
    """A worker begins."""
    _log.info("worker %s started on %s for %s", claimant, store, ", ".join(effects) or "no effects")


@hookimpl
def worker_stopped(claimant: str, store: str, error: str | None) -> None:
    """A worker has ended."""
    if error is None:
        _log.info("worker %s stopped", claimant)
    else:
        _log.error("worker %s stopped: %s", claimant, error)
