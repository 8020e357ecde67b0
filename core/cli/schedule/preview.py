"""``fencepost schedule preview``: the next times of a schedule, or of a spec that is no schedule yet."""

from __future__ import annotations

from typing import Annotated

import typer

from ...errors import InvalidInput
from ...model.clock import wall_ms
from ...model.durations import relative
from ...model.inputs import is_name
from ...model.timetable import Timetable, spec_of, timetable, tz_version_of
from ...model.zones import UTC
from ..ui import options
from ..ui.output import print_document, wants_json
from ..ui.store import instant, open_existing
from .output import local


def preview(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME|EXPR",
            help="A schedule of the ledger; or a span (15m), cron fields in quotes ('0 9 * * mon-fri'), @daily.",
        ),
    ],
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="ZONE", help="The IANA time zone of EXPR. [default: UTC]")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="N", min=1, max=1_000, help="How many times to show.")
    ] = 10,
    store: options.Store = None,
    as_json: options.Json = False,
    now_ms: options.NowMs = -1,
    config: options.Config = None,
) -> None:
    """Show when a schedule fires next, by the clock of its zone and from now. Changes nothing.

    An expression needs no ledger: try it before you add it.

    Example: fencepost schedule preview '0 9 * * mon-fri' --zone Europe/Berlin -n 5
    """
    if is_name(what):
        if zone is not None:
            raise InvalidInput(f"the schedule {what!r} has a zone of its own: leave --zone out")
        with open_existing(store, config, now_ms) as ledger:
            at_ms = instant(ledger, now_ms)
            found = next((one for one in ledger.schedules() if one.name == what), None)
            if found is None:
                raise InvalidInput(
                    f"{ledger.location}: there is no schedule {what!r}; see: fencepost schedule list"
                )
        every, zone, first_ms = found.every, found.zone, found.next_ms or 0
        table = timetable(every, zone, first_ms)
        times = _times(table, first_ms - 1, count)
    else:
        at_ms = wall_ms() if now_ms < 0 else now_ms
        every, zone = spec_of(what), zone or UTC
        table = timetable(every, zone, at_ms)
        times = _times(table, at_ms, count)
    if wants_json(as_json):
        print_document(
            {
                "schema_version": 1,
                "every": every,
                "zone": zone,
                "tz_version": tz_version_of(table),
                "next": [{"at_ms": time_ms, "local": local(time_ms, zone)} for time_ms in times],
            }
        )
        return
    from ..ui.render import draw_times  # rich is slow to load, and only a terminal needs it

    draw_times(
        [(local(time_ms, zone), local(time_ms, UTC), relative(time_ms, at_ms)) for time_ms in times], zone
    )


def _times(table: Timetable, after_ms: int, count: int) -> list[int]:
    times: list[int] = []
    at_ms: int | None = after_ms
    while len(times) < count and at_ms is not None and (at_ms := table.after(at_ms)) is not None:
        times.append(at_ms)
    return times
