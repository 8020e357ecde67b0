"""The whole of ``fencepost doctor`` on one ledger: the engine's own findings, then those of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import Final

from ..errors import LedgerError
from ..ledgers.closing import Closing
from ..ledgers.inspection import Entry, Finding, Inspection
from .checks import Count, Examination, latest_move_ms
from .schedules import ScheduleExamination

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
    lacks_settings: Callable[[str], str | None] = lambda effect: None,
    progress: Callable[[int, str], None] = lambda done, said: None,
) -> Report:
    """Look at everything; with ``verify`` every digest, and what ``count`` says of every text, is computed again.

    ``lacks_settings`` says which settings an effect lacks here; ``progress`` is told how many ids were looked at.
    """
    found: list[Finding] = []
    try:
        found += inspection.findings()
        closing = inspection.closing()
        found += _closing_findings(closing)
        examination = Examination(
            now_ms=now_ms, paused=inspection.paused(), count=count, lacks_settings=lacks_settings
        )
        # Of a ledger that was sealed they go on elsewhere.
        schedules = inspection.schedules() if closing.sealed_for is None else []
        planned = ScheduleExamination(schedules, now_ms=now_ms)
        verified = _look(inspection, examination, planned, verify=verify, progress=progress)
    except LedgerError as error:
        # Nothing can be said of the jobs of a ledger that cannot be read.
        found.append(Finding("unreadable-ledger", str(error), "restore it from a back-up, or mend the cause"))
        return Report(found, 0, 0, 0)
    found += examination.findings()
    found += planned.findings()
    return Report(found, examination.entries, examination.receipts, verified)


def _look(
    inspection: Inspection,
    examination: Examination,
    planned: ScheduleExamination,
    *,
    verify: bool,
    progress: Callable[[int, str], None],
) -> int:
    """Look at every entry, and compare receipts with their inputs: how many."""
    latest: list[tuple[int, int, str]] = []
    to_compare: list[str] = []
    verified = 0
    for number, entry in enumerate(inspection.entries(), 1):
        examination.look(entry)
        planned.look(entry)
        if entry.has_receipt and entry.has_input:
            if not verify:
                _keep_latest(latest, entry, number)
            else:
                to_compare.append(entry.id)
                if len(to_compare) == BATCH:
                    verified += _compare(inspection, examination, to_compare)
                    to_compare = []
        if number % BATCH == 0:
            progress(number, f"{number:,} ids")
    to_compare += [id for _, _, id in latest]
    return verified + _compare(inspection, examination, to_compare)


def _keep_latest(latest: list[tuple[int, int, str]], entry: Entry, number: int) -> None:
    """Keep ``SAMPLE`` of them in a heap: entries come in whatever order costs the ledger least.

    Where it keeps no instants, the last that came counts as the latest.
    """
    at_ms = None if entry.job is None else latest_move_ms(entry.job)
    add = heappush if len(latest) < SAMPLE else heappushpop
    add(latest, (at_ms or 0, number, entry.id))


def _closing_findings(closing: Closing) -> Iterator[Finding]:
    if closing.sealed_for is not None:
        yield Finding(
            "sealed",
            f"this ledger was sealed for {closing.sealed_for}",
            "use that one once the copy has ended, which `fencepost copy` says (it may be run again); then keep or "
            "delete this one",
        )
    if closing.copying_from is not None:
        yield Finding(
            "unfinished-copy",
            f"the copy of {closing.copying_from} to here has not ended: nothing may change here until it has",
            f"run `fencepost copy --from {closing.copying_from}` to here again, which goes on where it stopped",
        )


def _compare(inspection: Inspection, examination: Examination, ids: Sequence[str]) -> int:
    for start in range(0, len(ids), BATCH):
        for content in inspection.contents(ids[start : start + BATCH]):
            examination.compare(content)
    return len(ids)
