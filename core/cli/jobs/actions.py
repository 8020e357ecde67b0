"""Moves that an operator makes with jobs named by their ids; every refusal is explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ...errors import FencepostError, InvalidInput, ReceiptConflict
from ...ledgers.protocol import Ledger
from ...model.durations import calendar
from ...model.inputs import check_name
from ...model.job import Job
from ..ui.output import print_document, wants_json

PARTICIPLES: Final = {
    "cancel": "cancelled",
    "reschedule": "rescheduled",
    "resolve": "resolved",
    "redrive": "redriven",
    "purge": "purged",
}
REFUSALS: Final = (InvalidInput, ReceiptConflict)
"""What a ledger raises where a decision does not fit one job; the others can still be moved."""


def move_each(
    ledger: Ledger, ids: Sequence[str], move: Callable[[str], bool], *, verb: str, fits: str
) -> list[dict[str, Any]]:
    """Move each of the jobs, and return the state of each afterwards.

    Raises:
        FencepostError: the ledger refused some; the message says which and why, and which were moved.
    """
    ids = list(dict.fromkeys(ids))  # an id that is named twice is moved once
    for id in ids:
        check_name(id, "id")
    done: list[dict[str, Any]] = []
    refused: list[str] = []
    for id in ids:
        try:
            if move(id):
                done.append(_summary(id, ledger.get_job(id)))
            else:
                refused.append(why_refused(ledger, id, verb=verb, fits=fits))
        except REFUSALS as error:
            refused.append(str(error))
    if refused:
        also = f"; moved all the same: {', '.join(item['ID'] for item in done)}" if done else ""
        raise FencepostError("; ".join(refused) + also)
    return done


def why_refused(ledger: Ledger, id: str, *, verb: str, fits: str) -> str:
    """Say why a job cannot be moved."""
    job = ledger.get_job(id)
    if job is None:
        return unknown(ledger, id)
    return (
        f"the job {id!r} is {job.state}, and only one that is {fits} can be {PARTICIPLES[verb]} "
        f"(what can be done with it: fencepost jobs show {id})"
    )


def unknown(ledger: Ledger, id: str) -> str:
    """Say why there is no such job: it never was, or it was purged."""
    purges = [entry for entry in ledger.audit(id=id) if entry.action == "purge"]
    if purges:
        last = purges[-1]
        by = f" by {last.actor}" if last.actor else ""
        reason = f" ({last.reason})" if last.reason else ""
        return f"the job {id!r} was dead and was purged{by} at {calendar(last.at_ms)}{reason}; its id stays bound"
    if ledger.read_inputs([id]):
        return (
            f"there is no job {id!r}, but its text is kept: it was dead and its retention ended, or its enqueue was "
            "cut off; the same text enqueued again makes it anew"
        )
    return f"{ledger.location}: there is no job {id!r}; look for it with `fencepost jobs list`"


def report(done: Sequence[dict[str, Any]], verb: str, *, as_json: bool) -> None:
    """Print what was done."""
    participle = PARTICIPLES[verb]
    if wants_json(as_json):
        print_document({"schema_version": 1, participle: list(done)})
        return
    for item in done:
        print(f"{participle} {item['ID']}" + (f": it is {item['State']} now" if item["State"] else ""))


def _summary(id: str, job: Job | None) -> dict[str, Any]:
    return {
        "ID": id,
        "State": None if job is None else job.state,
        "Version": None if job is None else job.version,
    }
