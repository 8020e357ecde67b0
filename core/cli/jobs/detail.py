"""All of one job: gathered from a ledger, and as the document of ``jobs show``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import InvalidInput, LedgerCorrupt
from ...ledgers.protocol import Ledger
from ...model.durations import relative
from ...model.explain import (
    Advice,
    Explanation,
    Surroundings,
    explain,
)
from ...model.fields import whole
from ...model.inputs import Input, check_name
from ...model.job import COMPLETED, DEAD, QUEUED, RUNNING, Job, lapsed
from ...model.keys import idempotency_key
from ...model.query import JobQuery
from ...model.receipts import Receipt
from ...model.records import AuditEntry
from ..installed import effect_here
from .actions import unknown


@dataclass(frozen=True, slots=True)
class JobDetail:
    """A job and what belongs to it, at one instant."""

    job: Job
    now_ms: int
    input: Input | None
    receipt: Receipt | None
    audit: list[AuditEntry]
    explanation: Explanation
    location: str
    idempotency_key: str | None
    """The key that the effect sends with every attempt; None where it has none, or where it is not known here."""
    fence: int | None
    """The fence of the last claim, where that can be explanation."""


def job_detail(ledger: Ledger, id: str, now_ms: int, *, config: str | None) -> JobDetail:
    """Gather all of a job.

    Raises:
        InvalidInput: there is no such job; the message says what is known of the id.
    """
    job = ledger.get_job(check_name(id, "id"))
    if job is None:
        raise InvalidInput(unknown(ledger, id))
    try:
        found = ledger.read_inputs([id]).get(id)
    except LedgerCorrupt:  # the explanation says so
        found = None
    receipt = ledger.receipts([id]).get(id)
    paused = ledger.capabilities.has_schedules and job.queue in ledger.paused()
    here = effect_here(job.effect, config)
    around = Surroundings(
        now_ms,
        has_input=found is not None,
        has_receipt=receipt is not None,
        paused=paused,
        pause_said=_last_pause(ledger, job.queue, now_ms) if paused else None,
        sealed_for=ledger.sealed_for(),
        copying_from=ledger.copying_from(),
        running_beside=_running_beside(ledger, job, now_ms) if job.state in (QUEUED, RUNNING) else 0,
        installed=here.installed,
        lacks_settings=here.lacks_settings,
    )
    key = None
    if found is not None and here.namespace is not None:
        key = idempotency_key(here.namespace, job.effect, id, found.sha256)
    audit = ledger.audit(id=id)
    return JobDetail(
        job, now_ms, found, receipt, audit, explain(job, around), ledger.location, key, last_fence(job, audit)
    )


def last_fence(job: Job, audit: Sequence[AuditEntry]) -> int | None:
    """Return the fence of the last claim; None where there was none, or where it can no longer be explanation.

    A ledger keeps one version for each job. A claim sets it to the fence, completing leaves it, and leaving the state
    running by any other move adds one. A job may die without having run, and a person's moves add more.
    """
    if job.attempts == 0 or audit:
        return None
    if job.state in (RUNNING, COMPLETED):
        return job.version
    return None if job.state == DEAD else job.version - 1


def document(detail: JobDetail, *, store: str | None, with_text: bool) -> dict[str, Any]:
    """Make the document that a program gets."""
    explanation = detail.explanation
    return {
        "schema_version": 1,
        "job": whole(detail.job),
        "why": explanation.why,
        "next": explanation.next,
        "next_at_ms": explanation.next_at_ms,
        "advice": [
            {"what": advice.what, "command": command(advice, detail, store=store)}
            for advice in explanation.advice
        ],
        "idempotency_key": detail.idempotency_key,
        "fence": detail.fence,
        "input": input_document(detail, with_text=with_text),
        "receipt": None if detail.receipt is None else detail.receipt.document(),
        "audit": [asdict(entry) for entry in detail.audit],
    }


def input_document(detail: JobDetail, *, with_text: bool) -> dict[str, Any] | None:
    """Return the input's size and digest; its text only where asked for, since it may be private or long."""
    if detail.input is None:
        return None
    size = len(detail.input.text.encode("utf-8"))
    shown: dict[str, Any] = {"bytes": size, "sha256": detail.input.sha256}
    return shown | {"text": detail.input.text} if with_text else shown


def command(advice: Advice, detail: JobDetail, *, store: str | None) -> str | None:
    """Return the command with the store that the person named; a URL is shown without its password."""
    if advice.command is None or store is None or "--store" in advice.command or "plugins" in advice.command:
        return advice.command
    return f"{advice.command} --store {shlex.quote(detail.location if '://' in store else store)}"


def _running_beside(ledger: Ledger, job: Job, now_ms: int) -> int:
    """Count the other jobs under a valid lease, up to a page: a lease that has ended shows no worker."""
    running = ledger.jobs(JobQuery(states=[RUNNING], queue=job.queue, effect=job.effect)).jobs
    return sum(one.id != job.id and not lapsed(one, now_ms) for one in running)


def _last_pause(ledger: Ledger, queue: str, now_ms: int) -> str | None:
    """Say who paused the queue, when and why, by the audit."""
    pauses = [entry for entry in ledger.audit(id=queue) if entry.action == "pause"]
    if not pauses:
        return None
    last = pauses[-1]
    by = f"by {last.actor} " if last.actor else ""
    return f"{by}{relative(last.at_ms, now_ms)}" + (f": {last.reason}" if last.reason else "")
