"""The whole of ``fencepost doctor`` on one ledger: the engine's own findings, then those of its jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..errors import LedgerError
from ..inspection import Finding, Inspection
from .checks import Count, Examination

SAMPLE: Final = 1_000
"""How many of the latest receipts are compared with their inputs where not all are asked for."""
BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at, and what was found."""

    findings: list[Finding]
    entries: int
    receipts: int
    verified: int
    """How many receipts were compared with their inputs."""


def examine(
    inspection: Inspection,
    *,
    now_ms: int,
    verify: bool,
    count: Count,
    progress: Callable[[int, str], None] = lambda done, said: None,
) -> Report:
    """Look at everything; with ``verify`` every digest, and what ``count`` says of every text, is computed again.

    ``progress`` is told how far it has come."""
    found: list[Finding] = []
    try:
        found += inspection.findings()
    except LedgerError as error:
        # Nothing can be said of the jobs of a ledger that cannot be read.
        found.append(Finding("unreadable-ledger", str(error), "restore it from a back-up, or mend the cause"))
        return Report(found, 0, 0, 0)
    if (destination := inspection.sealed_for()) is not None:
        found.append(
            Finding(
                "sealed",
                f"this ledger was sealed for {destination}",
                "use that one once the copy has ended, which `fencepost copy` says (it may be run again); then keep or "
                "delete this one",
            )
        )
    examination = Examination(now_ms=now_ms, paused=inspection.paused(), count=count)
    with_receipt: deque[str] = deque(maxlen=None if verify else SAMPLE)
    verified = 0
    for number, entry in enumerate(inspection.entries(), 1):
        examination.look(entry)
        if entry.has_receipt and entry.has_input:
            with_receipt.append(entry.id)
            if verify and len(with_receipt) == BATCH:
                verified += _compare(inspection, examination, with_receipt)
        if number % BATCH == 0:
            progress(number, f"{number:,} ids")
    verified += _compare(inspection, examination, with_receipt)
    found += examination.findings()
    return Report(found, examination.entries, examination.receipts, verified)


def _compare(inspection: Inspection, examination: Examination, ids: deque[str]) -> int:
    count = len(ids)
    for batch in _batches(ids):
        for content in inspection.contents(batch):
            examination.compare(content)
    ids.clear()
    return count


def _batches(ids: deque[str]) -> Iterator[Sequence[str]]:
    walk = iter(ids)
    while batch := list(islice(walk, BATCH)):
        yield batch
