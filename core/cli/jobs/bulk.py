"""Moves of many jobs, by their ids or by filters: counted first, confirmed, then made one by one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...errors import FencepostError, InvalidInput, LedgerError
from ...ledgers.protocol import Ledger
from ...model.explain import first_line
from ...model.job import Job, State
from ..ui.output import print_document, wants_json
from .actions import PARTICIPLES, REFUSALS, move_each, report
from .selection import NO_FILTERS, Filters, all_pages

EXAMPLES: Final = 10
"""How many ids a dry run shows."""


def move_chosen(
    ledger: Ledger,
    move: Callable[[str], bool],
    ids: Sequence[str],
    filters: Filters,
    *,
    state: State,
    now_ms: int,
    verb: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move the jobs that the person named by their ids, or chose by filters; all of them are in ``state``.

    Raises:
        InvalidInput: neither ids nor a queue, or both; or nobody is there to confirm.
        FencepostError: a job was refused, or the confirmation was not given.
    """
    if bool(ids) == (filters != NO_FILTERS):
        raise InvalidInput(
            f"say which {state} jobs to {verb}: either their ids, or filters (--queue NAME and more), not both"
        )
    if ids:
        if dry_run:
            raise InvalidInput("--dry-run goes with filters; to look at one job: fencepost jobs show ID")
        report(move_each(ledger, ids, move, verb=verb, fits=state), verb, as_json=as_json)
        return
    if filters.queue is None:
        raise InvalidInput(
            f"many jobs at once are {PARTICIPLES[verb]} one queue at a time: name it with --queue"
        )
    # A list, read to its end first: what is moved must not change what is found next.
    found = list(all_pages(ledger, filters.on(ledger, now_ms, states=[state])))
    if dry_run:
        _print_plan(found, verb, state, filters.queue, as_json=as_json)
        return
    _confirm(f"{verb} {_jobs(len(found), state)} of the queue {filters.queue!r}", filters.queue, yes=yes)
    _move_found(found, move, verb=verb, state=state, as_json=as_json)


def _move_found(
    found: Sequence[Job], move: Callable[[str], bool], *, verb: str, state: State, as_json: bool
) -> None:
    moved: list[str] = []
    refused: list[str] = []
    for job in found:
        try:
            if move(job.id):  # one that has changed meanwhile is passed over
                moved.append(job.id)
        except REFUSALS as error:
            refused.append(str(error))
        except LedgerError as error:
            raise type(error)(
                f"{error}; {len(moved):,} of {len(found):,} were {PARTICIPLES[verb]} before that: run the command again"
            ) from error
    if refused:
        raise FencepostError(
            f"{_jobs(len(refused), state)} could not be {PARTICIPLES[verb]}, {len(moved):,} others were; "
            f"the first: {refused[0]}"
        )
    _print_done(moved, verb, state, as_json=as_json)


def _print_plan(found: Sequence[Job], verb: str, state: State, queue: str, *, as_json: bool) -> None:
    errors = Counter(first_line(job.last_error or "") for job in found)
    if wants_json(as_json):
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

    print(
        f"{_jobs(len(found), state)} of the queue {queue!r} would be {PARTICIPLES[verb]}; nothing was changed"
    )
    for error, count in errors.most_common(EXAMPLES):
        print(f"  {count:>7,}  {visible(error)}")
    if found:
        more = " …" if len(found) > EXAMPLES else ""
        print(f"  {', '.join(job.id for job in found[:EXAMPLES])}{more}")


def _print_done(moved: Sequence[str], verb: str, state: State, *, as_json: bool) -> None:
    if wants_json(as_json):
        print_document({"schema_version": 1, PARTICIPLES[verb]: len(moved), "ids": list(moved)})
    else:
        print(f"{PARTICIPLES[verb]} {_jobs(len(moved), state)}")


def _confirm(what: str, name: str, *, yes: bool) -> None:
    """Ask the person to type the queue's name, unless they said ``--yes``."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(
            f"to {what}: look with --dry-run first, then say --yes (there is no terminal to ask on)"
        )
    print(f"This will {what}. Type the queue's name to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise FencepostError(f"that was not {name!r}; nothing was changed")


def _jobs(count: int, state: State) -> str:
    return f"1 {state} job" if count == 1 else f"{count:,} {state} jobs"
