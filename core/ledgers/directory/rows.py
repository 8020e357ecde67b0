"""A job as an object of ``jobs.json``, and back: docs/reference/contract/directory-ledger.md §5.

Five fields always, in this order; the others only where they are not the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from ...errors import InvalidInput, LedgerCorrupt
from ...model.documents import compact, parse
from ...model.fields import five, given, options
from ...model.inputs import PRIORITIES, is_name
from ...model.job import (
    DEFAULT_EFFECT,
    DEFAULT_QUEUE,
    STATES,
    Job,
    Stamps,
    State,
)
from ...model.texts import storable

MAX_ERROR_BYTES: Final = 1024
PURGED: Final = "purged"

_LEFT: Final = (
    "the file is left as it is: restore it from a copy, or mend it while no program has the ledger open"
)
_FIVE: Final = frozenset({"ID", "State", "Version", "LeaseUntil", "Attempts"})
_NAMES: Final = frozenset({"Queue", "Effect"})
_AT_LEAST_ONE: Final = frozenset({"VisibilityTimeout", "MaxAttempts", "BackoffBase"})
_FIGURES: Final = _AT_LEAST_ONE | {
    "RunAt", "ExpiresAt", "DeadLetterRetention", "FirstClaimedAt", "StartedAt", "DiedAt",
}  # fmt: skip
_KNOWN: Final = _FIVE | _NAMES | _FIGURES | {"Priority", "LastError"}


@dataclass(frozen=True, slots=True)
class Purged:
    """What stays of a purged id: its last version, so that an old fence never fits a new job."""

    id: str
    version: int


def kept(job: Job) -> Job:
    """The job without what this ledger does not keep."""
    return job._replace(
        enqueued_at_ms=None,
        claimant=None,
        claimed_at_ms=None,
        completed_at_ms=None,
        first_claimed_at_ms=None if job.effect == DEFAULT_EFFECT else job.first_claimed_at_ms,
        last_error=None if job.last_error is None else storable(job.last_error, MAX_ERROR_BYTES),
    )


def fields(job: Job) -> dict[str, Any]:
    """The job as the object of the file."""
    return (
        five(job)
        | options(job)
        | given(
            {
                "FirstClaimedAt": job.first_claimed_at_ms if job.effect != DEFAULT_EFFECT else None,
                "StartedAt": job.started_at_ms,
                "LastError": job.last_error,
                "DiedAt": job.died_at_ms,
            }
        )
    )


def encode(entry: Job | Purged) -> bytes:
    """One object of the array, indented as an item of it."""
    members = ",\n".join([f'    "{name}": {compact(value)}' for name, value in _row(entry).items()])
    return f"  {{\n{members}\n  }}".encode()


def _row(entry: Job | Purged) -> dict[str, Any]:
    if isinstance(entry, Job):
        return fields(entry)
    return five(Job(entry.id, version=entry.version)) | {"State": PURGED}


def decode(data: bytes, *, where: str) -> list[Job | Purged]:
    """Every entry of the file, in order of enqueue.

    Raises:
        LedgerCorrupt: unknown fields or states, duplicate ids, figures out of range, not one document.
    """
    try:
        found = parse(data, what=where)
    except InvalidInput as error:
        raise LedgerCorrupt(f"{error}; {_LEFT}") from error
    if not isinstance(found, list):
        raise LedgerCorrupt(f"{where}: must be a JSON array of jobs; {_LEFT}")
    entries: list[Job | Purged] = []
    seen: set[str] = set()
    for place, row in enumerate(found, 1):
        try:
            entry = _entry(row)
            if entry.id in seen:
                raise InvalidInput(f"the id {entry.id!r} stands twice")
        except InvalidInput as error:
            raise LedgerCorrupt(f"{where}: job {place}: {error}; {_LEFT}") from error
        seen.add(entry.id)
        entries.append(entry)
    return entries


def _entry(row: object) -> Job | Purged:
    if not isinstance(row, dict):
        raise InvalidInput("must be an object")
    if missing := _FIVE - row.keys():
        raise InvalidInput(f"the field {min(missing)!r} is missing")
    id, state = row["ID"], row["State"]
    if not is_name(id):
        raise InvalidInput(f"the ID {id!r:.80} is not an id")
    for name in ("Version", "LeaseUntil", "Attempts"):
        _figure(row, name)
    if state == PURGED:
        if row.keys() != _FIVE:
            raise InvalidInput("a purged id has no fields but the five")
        return Purged(id, row["Version"])
    if not _is_state(state):
        raise InvalidInput(f"the state {state!r:.80} is unknown")
    if len(row) == len(_FIVE):
        return Job(id, state, row["Version"], row["LeaseUntil"], row["Attempts"])
    _check_options(row)
    return Job(
        id=id,
        state=state,
        version=row["Version"],
        lease_until_ms=row["LeaseUntil"],
        attempts=row["Attempts"],
        queue=row.get("Queue", DEFAULT_QUEUE),
        effect=row.get("Effect", DEFAULT_EFFECT),
        priority=row.get("Priority", 0),
        run_at_ms=row.get("RunAt"),
        expires_at_ms=row.get("ExpiresAt"),
        first_claimed_at_ms=row.get("FirstClaimedAt"),
        started_at_ms=row.get("StartedAt"),
        last_error=row.get("LastError"),
        died_at_ms=row.get("DiedAt"),
        stamps=Stamps.from_ms(
            row.get("VisibilityTimeout"),
            row.get("MaxAttempts"),
            row.get("BackoffBase"),
            row.get("DeadLetterRetention"),
        ),
    )


def _check_options(row: dict[str, Any]) -> None:
    if unknown := row.keys() - _KNOWN:
        raise InvalidInput(f"the field {min(unknown)!r:.80} is unknown")
    for name in _FIGURES & row.keys():
        _figure(row, name, low=1 if name in _AT_LEAST_ONE else 0)
    for name in _NAMES & row.keys():
        if not is_name(row[name]):
            raise InvalidInput(f"{name} {row[name]!r:.80} is not a name")
    if "Priority" in row:
        _figure(row, "Priority", low=PRIORITIES[0], high=PRIORITIES[1])
    if "LastError" in row and not isinstance(row["LastError"], str):
        raise InvalidInput("LastError must be a string")


def _figure(row: dict[str, Any], name: str, *, low: int = 0, high: int | None = None) -> None:
    value = row[name]
    if type(value) is not int or value < low or (high is not None and value > high):
        raise InvalidInput(f"{name} is {value!r:.80}, which is not a whole number of {low} or more")


def _is_state(value: object) -> TypeGuard[State]:
    return value in STATES
