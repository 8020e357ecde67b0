"""Every hook, in the order in which a job meets them.

A plugin takes of a hook's arguments those that it wants, by name. ``info`` is the declaration of the effect that
is called: of no use to the effect itself, but to a wrapper that sits around many effects.

Middleware that takes settings declares them with ``effect_info``, too, and implements neither of the two; it may
implement ``effect_configure``, ``effect_close`` and ``effect_text``.

An effect implements ``effect_info`` and exactly one of ``effect_outcome`` and ``effect_apply``; the other
``effect_`` hooks as it needs them. A plugin without ``effect_info`` is an observer (the hooks after
``effect_close``), or middleware (wrappers of the ``effect_`` hooks that say so), or both.

Threads: a worker calls the hooks of one effect from as many threads at once as it has slots. What a plugin keeps
must stand that.
"""

# The bodies are empty by nature: pluggy reads the signatures, and docs/reference/hooks.md is made from both.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pluggy import HookspecMarker

from ..core.model.documents import JSON
from ..core.model.effect import EffectInfo, EffectRequest, Reconciled
from ..core.model.inputs import NewJob
from ..core.model.job import Job
from ..core.model.receipts import Receipt

hookspec = HookspecMarker("fencepost")


# -- An effect --------------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def effect_info() -> EffectInfo:  # type: ignore[empty-body]
    """Declare the effect: its name, version, delivery and settings.

    Called: once, when the plugin is loaded, by every command that runs or enqueues jobs.
    Thread: the main thread.
    Raising: the plugin is broken; jobs of its effect stay where they are, nothing else is harmed.
    Wrappers: no.
    Since: 1
    """


@hookspec
def effect_configure(settings: Mapping[str, Any], info: EffectInfo) -> None:
    """Take the settings, and open what the effect needs; the place for slow imports.

    ``settings`` has every setting that ``effect_info`` declares, checked, with defaults filled in, and the
    ``namespace`` where the effect takes one. Secrets are strings whose ``repr`` hides them.

    Called: once, before any other hook but ``effect_info``, by the worker and where a text is validated.
    Thread: the main thread.
    Raising: the effect cannot be used, and the command that needs it ends with the error.
    Wrappers: no.
    Since: 1
    """


@hookspec(firstresult=True)
def effect_text(text: str, info: EffectInfo) -> str:  # type: ignore[empty-body]
    """Change the text that other plugins' effects see: decrypt it, fill in a template. For middleware.

    Stored input, digest and idempotency key stay those of the stored text. Where several plugins change the text, the
    outermost is asked first. For a pure effect it must give the same answer whenever it is asked.

    Called: before ``effect_validate``, ``effect_outcome``, ``effect_apply`` and ``effect_reconcile``, with the stored
        text. It must not change anything outside.
    Thread: any of the worker's; at enqueue the caller's.
    Raising: as if the hook that follows had raised it.
    Wrappers: no.
    Since: 1
    """


@hookspec
def effect_validate(text: str, info: EffectInfo) -> None:
    """Refuse a text that the effect could never apply.

    Called: by the command ``enqueue`` and by a ``Producer``, once for each record, before anything is stored; by
        ``schedule add``, once. It must not change anything.
    Thread: the caller's of the enqueue.
    Raising: ``InvalidInput`` or ``ValueError`` refuses the whole request, with the message; anything else is a
        fault of the plugin and refuses it too.
    Wrappers: yes.
    Since: 1
    """


@hookspec(firstresult=True)
def effect_outcome(text: str, info: EffectInfo) -> Mapping[str, JSON]:  # type: ignore[empty-body]
    """Compute the outcome of a pure effect: no side effect, and the same answer whenever it is asked.

    The answer is a JSON object (a dict) of at most 64 KiB, nested at most 100 deep, without the keys id,
    input_sha256, effect, effect_version.

    Called: once for each attempt, and once more where a receipt is checked.
    Thread: any of the worker's.
    Raising: the attempt has failed and is tried again after a backoff; ``Retry``, ``Reject`` and ``Hold`` say
        otherwise.
    Wrappers: yes.
    Since: 1
    """


@hookspec(firstresult=True)
def effect_apply(request: EffectRequest, info: EffectInfo) -> Mapping[str, JSON]:  # type: ignore[empty-body]
    """Do the work of an acting effect, and say what was done.

    The answer is a JSON object (a dict) of at most 64 KiB, nested at most 100 deep, without the keys id,
    input_sha256, effect, effect_version; it becomes the receipt. It should hold nothing that would differ if the
    work were found done already.

    Called: once for each attempt that finds no receipt; for ``probed`` only after ``effect_reconcile`` said no,
        or on the job's very first claim.
    Thread: any of the worker's.
    Raising: the attempt has failed and is tried again after a backoff (``once``: the job is held);
        ``Retry``, ``Reject`` and ``Hold`` say otherwise; ``LeaseLost`` gives up silently.
    Wrappers: yes.
    Since: 1
    """


@hookspec(firstresult=True)
def effect_reconcile(request: EffectRequest, info: EffectInfo) -> Reconciled:  # type: ignore[empty-body]
    """Ask the receiver what became of ``request.idempotency_key``. It must not change anything.

    Answer ``Applied(outcome)`` with what the receiver stored; ``NotApplied()`` only if it is certain that the
    receiver has not applied it and that no earlier request can still arrive; else ``Unknown(reason)``.

    Called: for ``probed``, before each attempt but the job's very first. A ``keyed`` effect may have it for its own
        use; the worker does not ask it, since the receiver replays.
    Thread: any of the worker's.
    Raising: the same as ``Unknown``: asked again after a backoff, held after the last attempt, and never applied
        without an answer.
    Wrappers: yes.
    Since: 1
    """


@hookspec
def effect_close() -> None:
    """Let go of what ``effect_configure`` opened.

    Called: once, when the command ends, if ``effect_configure`` has returned (or is not implemented).
    Thread: the main thread.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


# -- Observers: told, never asked -------------------------------------------------------------------------


@hookspec
def job_enqueued(job: NewJob, created: bool) -> None:
    """A record was stored; ``created`` is False if the same job was there already.

    Called: by the command ``enqueue`` and by a ``Producer``, once for each record, after the commit that stored the
        request; in a transaction of the caller's own, before its commit. The ledger's own verb ``enqueue``, and
        schedules, are not observed.
    Thread: the caller's of the enqueue.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def job_claimed(job: Job) -> None:
    """A worker took the job; ``job.version`` is its fence and ``job.attempts`` counts this attempt.

    Called: once for each claimed job, after the claim's commit and before the attempt.
    Thread: any of the worker's.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def job_completed(job: Job, receipt: Receipt, reused: bool) -> None:
    """The job is done; ``reused`` is True if its receipt was there and nothing was applied this time.

    Called: once for each completion, after its commit. ``job`` is as it was claimed.
    Thread: any of the worker's.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def job_retried(job: Job, error: str, run_at_ms: int | None) -> None:
    """An attempt failed, and the job is queued again for ``run_at_ms`` (None: at once).

    Called: once for each failed attempt, after its commit. ``job`` is as it was claimed.
    Thread: any of the worker's.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def job_dead(job: Job, error: str) -> None:
    """The worker's attempt was the last one, or was rejected: the job is dead.

    Called: once, after the commit. Jobs that the reaping of a claim buries (expired, used up) are not reported.
    Thread: any of the worker's.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def job_held(job: Job, error: str) -> None:
    """The worker parked the job for an operator, and ``error`` says why.

    Called: once, after the commit. Jobs that the reaping of a claim holds are not reported.
    Thread: any of the worker's.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def job_lost(job: Job) -> None:
    """The worker's claim no longer held when it wanted to move the job: another attempt has it, or will.

    Called: once for each claim that was lost.
    Thread: any of the worker's.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def worker_started(claimant: str, store: str, effects: tuple[str, ...]) -> None:
    """A worker begins: who it is, its ledger (a path, or a URL without password), and what it serves.

    Called: once for each run of a worker, before its first claim.
    Thread: the worker's main thread.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """


@hookspec
def worker_stopped(claimant: str, store: str, error: str | None) -> None:
    """A worker has ended; ``error`` says why, if it was not asked to.

    Called: once for each run of a worker, after its last move. Not if it is killed.
    Thread: the worker's main thread.
    Raising: logged and passed over.
    Wrappers: no.
    Since: 1
    """
