"""Moving dead jobs, by their ids or all of a queue that fit: looked at first, confirmed, then one by one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...errors import FencepostError, InvalidInput, LedgerError
from ...ledgers.protocol import Ledger
from ...model.explain import first_line
from ...model.job import DEAD, Job
from ..ui.output import for_a_program, print_document
from .actions import PARTICIPLES, act, report
from .selection import Filters, all_pages

EXAMPLES: Final = 10
"""How many ids a dry run names."""


def move_dead(
    ledger: Ledger,
    move: Callable[[str], bool],
    ids: Sequence[str],
    filters: Filters,
    *,
    now_ms: int,
    verb: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move the dead jobs that the person named or chose.

    Raises:
        InvalidInput: neither ids nor a queue, or both; or nobody is there to confirm.
        FencepostError: a named job was refused, or the confirmation was not given.
    """
    filtered = filters != Filters(None, None, None, None, None, None, None)
    if bool(ids) == filtered:
        raise InvalidInput(
            f"say which dead jobs to {verb}: either their ids, or filters (--queue NAME and more), not both"
        )
    if ids:
        if dry_run:
            raise InvalidInput("--dry-run goes with filters; to look at one job: fencepost jobs show ID")
        report(act(ledger, ids, move, verb=verb, fits=DEAD), verb, as_json=as_json)
        return
    if filters.queue is None:
        raise InvalidInput(
            f"many jobs at once are {PARTICIPLES[verb]} one queue at a time: name it with --queue"
        )
    # A list, not a walk: what is moved must not change what is found next.
    found = list(all_pages(ledger, filters.on(ledger, now_ms, states=[DEAD])))
    if dry_run:
        _print_plan(found, verb, filters.queue, as_json=as_json)
        return
    _confirm(f"{verb} {_jobs(len(found))} of the queue {filters.queue!r}", filters.queue, yes=yes)
    moved: list[str] = []
    for job in found:
        try:
            if move(job.id):  # one that has changed meanwhile is passed over
                moved.append(job.id)
        except LedgerError as error:
            raise type(error)(
                f"{error}; {len(moved):,} of {len(found):,} were {PARTICIPLES[verb]} before that: run the command again"
            ) from error
    _print_done(moved, verb, as_json=as_json)


def _print_plan(found: Sequence[Job], verb: str, queue: str, *, as_json: bool) -> None:
    errors = Counter(first_line(job.last_error or "") for job in found)
    if for_a_program(as_json):
        plan: dict[str, Any] = {
            "schema_version": 1,
            "dry_run": True,
            f"would_be_{PARTICIPLES[verb]}": len(found),
            "errors": dict(errors.most_common(EXAMPLES)),
            "first_ids": [job.id for job in found[:EXAMPLES]],
        }
        print_document(plan)
        return
    from ..ui.tables import visible  # rich is slow to load, and only a terminal needs it

    print(f"{_jobs(len(found))} of the queue {queue!r} would be {PARTICIPLES[verb]}; nothing was changed")
    for error, count in errors.most_common(EXAMPLES):
        print(f"  {count:>7,}  {visible(error)}")
    if found:
        more = " …" if len(found) > EXAMPLES else ""
        print(f"  {', '.join(job.id for job in found[:EXAMPLES])}{more}")


def _print_done(moved: Sequence[str], verb: str, *, as_json: bool) -> None:
    if for_a_program(as_json):
        print_document({"schema_version": 1, PARTICIPLES[verb]: len(moved), "ids": list(moved)})
    else:
        print(f"{PARTICIPLES[verb]} {_jobs(len(moved))}")


def _confirm(what: str, name: str, *, yes: bool) -> None:
    """Let a person type the queue's name."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(
            f"to {what}: look with --dry-run first, then say --yes (there is no terminal to ask on)"
        )
    print(f"This will {what}. Type the queue's name to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise FencepostError(f"that was not {name!r}; nothing was changed")


def _jobs(count: int) -> str:
    return "1 dead job" if count == 1 else f"{count:,} dead jobs"
