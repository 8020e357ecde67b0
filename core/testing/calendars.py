"""Schedules by the calendar: zones, what was missed, overlaps, and clocks and tz databases that change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from ..ledgers.protocol import Ledger
from ..model.records import Fire, Schedule
from .base import Contract, claim_one
from .races import together

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NINE = Schedule("nine", "0 9 * * mon-fri", "good morning", zone="Europe/Berlin")
EVERY_MINUTE = Schedule("beat", "@every 1m", "tick tock")
ONE_BY_ONE = replace(EVERY_MINUTE, overlap="skip")


def ms(written: str) -> int:
    """The milliseconds of an instant such as ``2026-03-29T03:00+02:00``."""
    return round(datetime.fromisoformat(written).timestamp() * 1_000)


def boundaries(fires: list[Fire]) -> list[int]:
    """Of those that were fired."""
    return [fire.boundary_ms for fire in fires if fire.created]


class CalendarContract(Contract):
    """When schedules of cron fields fire, and what of schedules of any kind is passed over."""

    @pytest.fixture
    def scheduling(self, ledger: Ledger) -> Ledger:
        """A ledger that has schedules."""
        if not ledger.capabilities.has_schedules:
            pytest.skip("has_schedules: this ledger has none")
        return ledger

    # -- zones --

    def test_cron_fields_fire_by_the_clock_of_their_zone(self, scheduling: Ledger) -> None:
        friday = ms("2026-03-27T12:00+01:00")
        scheduling.register_schedule(NINE, now_ms=friday)
        monday = ms("2026-03-30T09:00+02:00")
        assert scheduling.soonest() == monday, "the clock was changed on Sunday"
        assert scheduling.tick(now_ms=monday - 1) == []
        (fire,) = scheduling.tick(now_ms=monday)
        assert (fire.id, fire.created) == (f"nine-{monday}", True)
        assert scheduling.soonest() == ms("2026-03-31T09:00+02:00")

    def test_what_a_schedule_of_cron_fields_says_comes_back(self, scheduling: Ledger) -> None:
        now_ms = ms("2026-06-01T08:00+02:00")
        said = replace(NINE, missed="all", overlap="skip")
        scheduling.register_schedule(said, now_ms=now_ms)
        (found,) = scheduling.schedules()
        assert found == replace(said, next_ms=ms("2026-06-01T09:00+02:00"))
        assert found.since_ms == now_ms
        assert found.tz_version is not None, "the version of the tz database that made the boundary is kept"

    def test_another_zone_begins_anew(self, scheduling: Ledger) -> None:
        now_ms = ms("2026-06-01T08:00+02:00")
        scheduling.register_schedule(NINE, now_ms=now_ms)
        scheduling.register_schedule(replace(NINE, zone="Asia/Tokyo"), now_ms=now_ms)
        assert scheduling.soonest() == ms("2026-06-02T09:00+09:00")

    @pytest.mark.parametrize(
        ("every", "before", "want"),
        [
            ("30 2 * * *", "2026-03-29T01:00+01:00", ["2026-03-29T03:00+02:00"]),
            ("30 2 * * *", "2026-10-25T01:00+02:00", ["2026-10-25T02:30+02:00"]),
            (
                "30 * * * *",
                "2026-10-25T01:00+02:00",
                ["2026-10-25T01:30+02:00", "2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"],
            ),
        ],
    )
    def test_of_ten_tickers_over_a_change_of_the_clock_each_boundary_fires_once(
        self,
        scheduling: Ledger,
        make_ledger: Callable[[], Ledger],
        every: str,
        before: str,
        want: list[str],
    ) -> None:
        ledgers = [make_ledger() for _ in range(10)]
        begin_ms = ms(before)
        scheduling.register_schedule(replace(NINE, every=every, missed="all"), now_ms=begin_ms)
        fired: list[int] = []
        for minutes in range(0, 151, 50):
            now_ms = begin_ms + minutes * MINUTE
            fires = together(partial(ledger.tick, now_ms=now_ms) for ledger in ledgers)
            fired += sorted(fire.boundary_ms for each in fires for fire in each)
        assert fired == [ms(one) for one in want]
        assert scheduling.counts()["queued"] == len(want)

    # -- what was missed --

    @pytest.mark.parametrize(
        ("missed", "fired"),
        [("all", [1, 2, 3, 4, 5]), ("latest", [5]), ("none", [4, 5]), (None, [1, 2, 3, 4, 5])],
    )
    def test_of_what_passed_while_nobody_ticked_all_the_latest_or_what_is_a_minute_late_fires(
        self, scheduling: Ledger, missed: str | None, fired: list[int]
    ) -> None:
        scheduling.register_schedule(replace(EVERY_MINUTE, missed=missed), now_ms=0)
        fires = scheduling.tick(now_ms=5 * MINUTE)
        assert boundaries(fires) == [n * MINUTE for n in fired]
        assert scheduling.soonest() == 6 * MINUTE
        assert scheduling.tick(now_ms=5 * MINUTE) == []

    def test_what_is_more_than_a_minute_late_was_missed(self, scheduling: Ledger) -> None:
        hourly = replace(EVERY_MINUTE, every="@every 1h", missed="none")
        scheduling.register_schedule(hourly, now_ms=0)
        assert boundaries(scheduling.tick(now_ms=HOUR + MINUTE)) == [HOUR]
        assert scheduling.tick(now_ms=2 * HOUR + MINUTE + 1) == []
        assert scheduling.soonest() == 3 * HOUR

    def test_of_cron_fields_only_the_latest_fires_unless_they_say_otherwise(self, scheduling: Ledger) -> None:
        begin_ms = ms("2026-06-01T00:00+02:00")
        scheduling.register_schedule(NINE, now_ms=begin_ms)
        scheduling.register_schedule(replace(NINE, name="every-one", missed="all"), now_ms=begin_ms)
        fires = scheduling.tick(now_ms=begin_ms + 3 * DAY)
        assert [(fire.schedule, fire.boundary_ms) for fire in fires if fire.created] == [
            ("every-one", ms("2026-06-01T09:00+02:00")),
            ("every-one", ms("2026-06-02T09:00+02:00")),
            ("every-one", ms("2026-06-03T09:00+02:00")),
            ("nine", ms("2026-06-03T09:00+02:00")),
        ]

    # -- overlaps --

    def test_nothing_fires_while_the_last_job_is_unfinished(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(ONE_BY_ONE, now_ms=0)
        assert boundaries(scheduling.tick(now_ms=MINUTE)) == [MINUTE]
        (waiting,) = scheduling.tick(now_ms=2 * MINUTE)
        assert (waiting.created, waiting.unfinished) == (False, "beat-60000")
        job = claim_one(scheduling, 2 * MINUTE, lease_ms=HOUR)
        (running,) = scheduling.tick(now_ms=3 * MINUTE)
        assert (running.id, running.unfinished) == ("beat-180000", "beat-60000")
        assert scheduling.complete(job.id, job.version, now_ms=3 * MINUTE)
        assert boundaries(scheduling.tick(now_ms=4 * MINUTE)) == [4 * MINUTE]
        assert scheduling.get_job("beat-180000") is None, "what was passed over is not made up for"

    def test_a_held_job_is_unfinished_and_a_dead_one_is_not(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(ONE_BY_ONE, now_ms=0)
        scheduling.tick(now_ms=MINUTE)
        job = claim_one(scheduling, MINUTE)
        assert scheduling.hold(job.id, job.version, error="nobody knows", now_ms=MINUTE)
        assert boundaries(scheduling.tick(now_ms=2 * MINUTE)) == []
        assert scheduling.resolve(job.id, decision="fail", now_ms=2 * MINUTE)
        assert boundaries(scheduling.tick(now_ms=3 * MINUTE)) == [3 * MINUTE]

    def test_a_purged_job_is_finished(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(ONE_BY_ONE, now_ms=0)
        scheduling.tick(now_ms=MINUTE)
        scheduling.cancel("beat-60000", now_ms=MINUTE)
        scheduling.purge("beat-60000", now_ms=MINUTE)
        assert boundaries(scheduling.tick(now_ms=2 * MINUTE)) == [2 * MINUTE]

    def test_of_several_boundaries_that_have_passed_one_fires(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(ONE_BY_ONE, now_ms=0)
        fires = scheduling.tick(now_ms=3 * MINUTE)
        assert [(fire.boundary_ms, fire.unfinished) for fire in fires] == [
            (MINUTE, None),
            (2 * MINUTE, "beat-60000"),
            (3 * MINUTE, "beat-60000"),
        ]

    def test_a_boundary_whose_id_is_bound_counts_as_fired_and_as_the_last(self, scheduling: Ledger) -> None:
        """So a crash between the enqueue and the note of it changes nothing."""
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.tick(now_ms=MINUTE)
        scheduling.unregister_schedule("beat")
        scheduling.register_schedule(ONE_BY_ONE, now_ms=0)
        fires = scheduling.tick(now_ms=2 * MINUTE)
        assert [(fire.id, fire.created, fire.unfinished) for fire in fires] == [
            ("beat-60000", False, None),
            ("beat-120000", False, "beat-60000"),
        ]

    def test_registering_again_does_not_forget_the_last_job(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(ONE_BY_ONE, now_ms=0)
        scheduling.tick(now_ms=MINUTE)
        scheduling.register_schedule(replace(ONE_BY_ONE, every="@every 2m"), now_ms=MINUTE)
        assert boundaries(scheduling.tick(now_ms=3 * MINUTE)) == []

    # -- clocks and tz databases that change --

    @pytest.mark.parametrize("every", ["@every 1h", "@hourly"])
    def test_what_was_registered_while_the_clock_was_ahead_fires_once_it_is_right(
        self, scheduling: Ledger, every: str
    ) -> None:
        right_ms = ms("2026-06-01T00:10+00:00")
        scheduling.register_schedule(replace(EVERY_MINUTE, every=every), now_ms=right_ms + 30 * DAY)
        assert scheduling.tick(now_ms=right_ms) == []
        soonest_ms = scheduling.soonest()
        assert soonest_ms is not None
        assert right_ms < soonest_ms <= right_ms + HOUR
        assert boundaries(scheduling.tick(now_ms=soonest_ms)) == [soonest_ms]

    def test_the_phase_of_a_period_is_kept_when_the_clock_is_put_back(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=30 * DAY + 7)
        scheduling.tick(now_ms=DAY)
        assert scheduling.soonest() == DAY + 7

    def test_a_boundary_that_fired_does_not_fire_again_when_the_clock_is_put_back(
        self, scheduling: Ledger
    ) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.tick(now_ms=3 * MINUTE)
        scheduling.tick(now_ms=0)
        assert boundaries(scheduling.tick(now_ms=3 * MINUTE)) == []
        assert scheduling.counts()["queued"] == 3

    def test_a_clock_that_is_only_adjusted_changes_nothing(self, scheduling: Ledger) -> None:
        begin_ms = ms("2026-06-01T08:59+02:00")
        scheduling.register_schedule(NINE, now_ms=begin_ms)
        scheduling.tick(now_ms=begin_ms + MINUTE)
        want_ms = scheduling.soonest()
        assert scheduling.tick(now_ms=begin_ms + MINUTE - 500) == []
        assert scheduling.soonest() == want_ms

    def test_what_a_newer_tz_database_made_is_not_fired_here_and_said(self, scheduling: Ledger) -> None:
        begin_ms = ms("2026-06-01T08:00+02:00")
        newer = replace(NINE, next_ms=begin_ms + HOUR, since_ms=begin_ms, tz_version="9999z")
        _bring(scheduling, newer, replace(EVERY_MINUTE, next_ms=begin_ms + HOUR))
        beat, nine = sorted(scheduling.tick(now_ms=begin_ms + HOUR), key=lambda fire: fire.schedule)
        assert (beat.created, nine.created) == (True, False)
        assert nine.error is not None
        assert "9999z" in nine.error
        assert scheduling.soonest() == begin_ms + HOUR + MINUTE, "it would be due for ever"
        assert newer in scheduling.schedules()

    def test_what_an_older_tz_database_made_is_computed_again(self, scheduling: Ledger) -> None:
        begin_ms = ms("2026-06-01T08:00+02:00")
        older = replace(NINE, next_ms=begin_ms + 2 * HOUR, since_ms=begin_ms, tz_version="1999a")
        _bring(scheduling, older)
        assert scheduling.tick(now_ms=begin_ms + 1) == []
        assert scheduling.soonest() == begin_ms + HOUR
        assert boundaries(scheduling.tick(now_ms=begin_ms + HOUR)) == [begin_ms + HOUR]

    def test_what_an_older_tz_database_put_too_late_fires_late_rather_than_never(
        self, scheduling: Ledger
    ) -> None:
        begin_ms = ms("2026-06-01T08:00+02:00")
        older = replace(NINE, next_ms=begin_ms + 2 * HOUR, since_ms=begin_ms, tz_version="1999a")
        _bring(scheduling, older)
        assert boundaries(scheduling.tick(now_ms=begin_ms + HOUR + 5 * MINUTE)) == [begin_ms + HOUR]


def _bring(ledger: Ledger, *schedules: Schedule) -> None:
    """Store schedules as another ledger had them."""
    assert ledger.begin_copy("elsewhere", now_ms=0)
    assert ledger.end_copy("elsewhere", schedules=schedules, now_ms=0)
