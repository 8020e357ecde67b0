"""What is wrong with the schedules of a ledger, from them and from one walk over its jobs: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ledgers.inspection import Entry, Finding
from ..model.durations import words
from ..model.job import HELD
from ..model.records import Schedule
from ..model.ticks import fault_of
from .checks import AHEAD_MS, LATE_MS, Tally


class ScheduleExamination:
    """One walk: ``look`` at every entry, then ask for ``findings``."""

    def __init__(self, schedules: Sequence[Schedule], *, now_ms: int) -> None:
        self._schedules = [one for one in schedules if not one.paused]
        self._now_ms = now_ms
        self._waited_for = {one.last_id for one in self._schedules if one.overlap == "skip"}
        self._held: set[str] = set()

    def look(self, entry: Entry) -> None:
        """Take one entry into account."""
        if entry.job is not None and entry.job.state == HELD and entry.id in self._waited_for:
            self._held.add(entry.id)

    def findings(self) -> Iterator[Finding]:
        """Everything that was found, each kind once; but a schedule that cannot fire by itself."""
        late, ahead, waiting = Tally(), Tally(), Tally()
        for schedule in self._schedules:
            fault = fault_of(schedule)
            if fault is not None:
                yield Finding(
                    "schedule-cannot-fire",
                    fault,
                    "add it again as it should be, or remove it",
                    (schedule.name,),
                )
            elif (schedule.since_ms or 0) > self._now_ms + AHEAD_MS:
                ahead.add(schedule.name)
            elif (schedule.next_ms or 0) < self._now_ms - LATE_MS:
                late.add(schedule.name)
            if schedule.last_id in self._held and schedule.overlap == "skip":
                waiting.add(schedule.name)
        if late.count:
            yield late.finding(
                "schedule-late",
                f"schedules that should have fired more than {words(LATE_MS)} ago: nobody fires them",
                "start a worker with --follow and without --no-schedules, or run: fencepost schedule run",
            )
        if ahead.count:
            yield ahead.finding(
                "schedule-ahead",
                "schedules that were registered or fired in the future, seen from this clock: it was set back, or "
                "machines differ",
                "set the clocks by NTP; the next tick of a worker sets their next times anew",
            )
        if waiting.count:
            yield waiting.finding(
                "schedule-waits-for-held",
                "schedules that fire nothing, because they skip overlaps and the job that they fired last is held",
                "decide the job: fencepost jobs list --state held; then fencepost jobs resolve ID",
            )
