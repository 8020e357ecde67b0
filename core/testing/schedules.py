"""Schedules: ``@every`` boundaries, each fired once, on a phase that skips and upserts keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from ..errors import InvalidInput
from ..ledgers.protocol import Ledger
from ..model.checks import MAX_INT
from ..model.job import Job, Stamps
from ..model.records import Fire, Schedule
from .base import (
    Contract,
    claim_one,
    ids,
    job_of,
    new,
)
from .model_store import as_kept
from .races import together

SECOND = 1_000
EVERY_MINUTE = Schedule("beat", "@every 1m", "tick tock")
MINUTE = 60 * SECOND

BAD_SPECS = [
    "",
    "@every",
    "@every 0s",
    "@every -1s",
    "@every +1s",
    "@every 1.5s",
    "@every 1",
    "@every 1ms",
    "@every 1 s",
    "@every  1s",
    "@every 1h30m",
    "@every 1s\n",
    " @every 1s",
    "@EVERY 1s",
    "@every 1S",
    "@every 1w",
    "@every ١s",
    "@every 1_0s",
    "@every " + "9" * 30 + "d",
    "@midnight",
    "@Hourly",
    "* * * *",
    "0 * * * * *",
    "60 * * * *",
    "0 0 L * *",
    "0 0 30 2 *",
]
BAD_SCHEDULES = {
    "a name of 51 characters": replace(EVERY_MINUTE, name="b" * 51),
    "a name in upper case": replace(EVERY_MINUTE, name="Beat"),
    "an empty name": replace(EVERY_MINUTE, name=""),
    "a queue with a blank": replace(EVERY_MINUTE, queue="my mail"),
    "an effect with a blank": replace(EVERY_MINUTE, effect="send mail"),
    "a text of 1,000,001 bytes": replace(EVERY_MINUTE, text="x" * 1_000_001),
    "a lone surrogate": replace(EVERY_MINUTE, text="\ud800"),
    "a priority beyond 32 bits": replace(EVERY_MINUTE, priority=2**31),
    "no attempts": replace(EVERY_MINUTE, stamps=Stamps(max_attempts=0)),
    "a zone that is not there": replace(EVERY_MINUTE, every="@daily", zone="Europe/Atlantis"),
    "a zone of @every": replace(EVERY_MINUTE, zone="Europe/Berlin"),
    "an unknown rule for what was missed": replace(EVERY_MINUTE, missed="some"),
    "an unknown rule for overlaps": replace(EVERY_MINUTE, overlap="wait"),
}


class ScheduleContract(Contract):
    """When schedules fire, and what."""

    @pytest.fixture
    def scheduling(self, ledger: Ledger) -> Ledger:
        """A ledger that has schedules."""
        if not ledger.capabilities.has_schedules:
            pytest.skip("has_schedules: this ledger has none")
        return ledger

    # -- registering --

    def test_the_first_boundary_is_one_period_after_the_registration(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=7)
        assert scheduling.schedules() == [replace(EVERY_MINUTE, next_ms=MINUTE + 7)]
        assert scheduling.soonest() == MINUTE + 7
        assert scheduling.tick(now_ms=MINUTE + 6) == []
        assert len(scheduling.tick(now_ms=MINUTE + 7)) == 1

    @pytest.mark.parametrize(
        ("every", "period_ms"),
        [
            ("@every 1s", SECOND),
            ("@every 90s", 90 * SECOND),
            ("@every 5m", 5 * MINUTE),
            ("@every 25h", 25 * 60 * MINUTE),
            ("@every 7d", 7 * 24 * 60 * MINUTE),
        ],
    )
    def test_periods_are_seconds_minutes_hours_or_days(
        self, scheduling: Ledger, every: str, period_ms: int
    ) -> None:
        scheduling.register_schedule(replace(EVERY_MINUTE, every=every), now_ms=1)
        assert scheduling.soonest() == 1 + period_ms

    @pytest.mark.parametrize("every", BAD_SPECS)
    def test_any_other_spec_is_refused(self, scheduling: Ledger, every: str) -> None:
        with pytest.raises(InvalidInput, match="every"):
            scheduling.register_schedule(replace(EVERY_MINUTE, every=every), now_ms=1)
        assert scheduling.schedules() == []

    def test_a_first_boundary_that_no_clock_reaches_is_refused(self, scheduling: Ledger) -> None:
        with pytest.raises(InvalidInput, match="beyond what any clock reaches"):
            scheduling.register_schedule(EVERY_MINUTE, now_ms=MAX_INT - MINUTE + 1)
        assert scheduling.schedules() == []
        scheduling.register_schedule(EVERY_MINUTE, now_ms=MAX_INT - MINUTE)

    @pytest.mark.parametrize("bad", BAD_SCHEDULES.values(), ids=BAD_SCHEDULES)
    def test_a_schedule_whose_jobs_could_not_be_enqueued_is_refused(
        self, scheduling: Ledger, bad: Schedule
    ) -> None:
        with pytest.raises(InvalidInput):
            scheduling.register_schedule(bad, now_ms=1)
        assert scheduling.schedules() == []

    def test_a_name_of_50_characters_fires(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(replace(EVERY_MINUTE, name="b" * 50), now_ms=2**42)
        (fire,) = scheduling.tick(now_ms=2**42 + MINUTE)
        assert fire.created
        assert claim_one(scheduling, 2**42 + MINUTE).id == fire.id

    def test_schedules_are_listed_by_name(self, scheduling: Ledger) -> None:
        for name in ("c", "a", "b"):
            scheduling.register_schedule(replace(EVERY_MINUTE, name=name), now_ms=1)
        assert [schedule.name for schedule in scheduling.schedules()] == ["a", "b", "c"]

    def test_registering_again_replaces_all_but_the_phase(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        other = Schedule("beat", "@every 1m", "other", "mail", "send", 5, 30, Stamps(1, 2, 3, 4))
        scheduling.register_schedule(other, now_ms=45 * SECOND)
        assert scheduling.schedules() == [replace(other, next_ms=MINUTE)]

    def test_registering_again_does_not_skip_what_has_passed(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.register_schedule(EVERY_MINUTE, now_ms=10 * MINUTE)
        assert scheduling.soonest() == MINUTE
        assert len(scheduling.tick(now_ms=10 * MINUTE)) == 10

    def test_another_period_begins_a_new_phase(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.register_schedule(replace(EVERY_MINUTE, every="@every 10s"), now_ms=45 * SECOND)
        assert scheduling.soonest() == 55 * SECOND

    def test_unregistering_ends_it(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        assert scheduling.unregister_schedule("beat") is True
        assert scheduling.unregister_schedule("beat") is False
        assert scheduling.schedules() == []
        assert scheduling.soonest() is None
        assert scheduling.tick(now_ms=10 * MINUTE) == []

    def test_a_schedule_that_was_removed_begins_anew(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.unregister_schedule("beat")
        scheduling.register_schedule(EVERY_MINUTE, now_ms=5)
        assert scheduling.soonest() == MINUTE + 5

    # -- firing --

    def test_a_fire_enqueues_the_job_of_its_boundary(self, scheduling: Ledger) -> None:
        stamps = Stamps(0.5, 7, 2, 90)
        schedule = Schedule("beat", "@every 1m", "tick tock", "mail", "send", -3, 30, stamps)
        scheduling.register_schedule(schedule, now_ms=0)
        assert scheduling.tick(now_ms=MINUTE + 5) == [Fire("beat", "beat-60000", MINUTE, created=True)]
        want = Job(
            id="beat-60000",
            queue="mail",
            effect="send",
            priority=-3,
            expires_at_ms=MINUTE + 30 * SECOND,
            enqueued_at_ms=MINUTE + 5,
            stamps=stamps,
        )
        assert scheduling.get_job("beat-60000") == as_kept(want, scheduling.capabilities)
        assert scheduling.read_inputs(["beat-60000"])["beat-60000"].text == "tick tock"
        assert claim_one(scheduling, MINUTE + 5).id == "beat-60000"

    @pytest.mark.parametrize(("offset_ms", "fires"), [(-1, 0), (0, 1), (+1, 1)])
    def test_a_boundary_fires_at_its_instant(self, scheduling: Ledger, offset_ms: int, fires: int) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        assert len(scheduling.tick(now_ms=MINUTE + offset_ms)) == fires
        assert scheduling.soonest() == (2 * MINUTE if fires else MINUTE)

    def test_a_second_tick_at_the_same_instant_fires_nothing(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        assert len(scheduling.tick(now_ms=MINUTE)) == 1
        assert scheduling.tick(now_ms=MINUTE) == []
        assert scheduling.tick(now_ms=0) == []

    def test_every_boundary_that_has_passed_fires_oldest_first(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        fires = scheduling.tick(now_ms=3 * MINUTE + 1)
        assert [fire.boundary_ms for fire in fires] == [MINUTE, 2 * MINUTE, 3 * MINUTE]
        assert ids(scheduling.jobs().jobs) == ["beat-60000", "beat-120000", "beat-180000"]
        assert scheduling.soonest() == 4 * MINUTE

    @pytest.mark.parametrize(("passed", "fired"), [(63, 63), (64, 64), (65, 64), (1_000_000, 64)])
    def test_a_tick_fires_64_boundaries_of_a_schedule_at_most_then_skips_on_its_phase(
        self, scheduling: Ledger, passed: int, fired: int
    ) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=7)
        now_ms = 7 + passed * MINUTE
        fires = scheduling.tick(now_ms=now_ms)
        assert [fire.boundary_ms for fire in fires] == [7 + MINUTE * (n + 1) for n in range(fired)]
        assert scheduling.counts()["queued"] == fired
        assert scheduling.soonest() == now_ms + MINUTE
        assert scheduling.tick(now_ms=now_ms) == []

    def test_the_first_boundary_after_a_skip_lies_strictly_after_now(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.tick(now_ms=99 * MINUTE + 59_999)
        assert scheduling.soonest() == 100 * MINUTE
        scheduling.tick(now_ms=300 * MINUTE)
        assert scheduling.soonest() == 301 * MINUTE

    def test_each_schedule_has_its_own_64(self, scheduling: Ledger) -> None:
        for name in ("a", "b"):
            scheduling.register_schedule(replace(EVERY_MINUTE, name=name), now_ms=0)
        fires = scheduling.tick(now_ms=100 * MINUTE)
        assert [sum(fire.schedule == name for fire in fires) for name in ("a", "b")] == [64, 64]

    def test_an_id_that_is_bound_already_counts_as_fired(self, scheduling: Ledger) -> None:
        scheduling.enqueue([new("beat-60000", "quite another text")], now_ms=0)
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        fires = scheduling.tick(now_ms=2 * MINUTE)
        assert [(fire.id, fire.created) for fire in fires] == [("beat-60000", False), ("beat-120000", True)]
        assert scheduling.read_inputs(["beat-60000"])["beat-60000"].text == "quite another text"
        assert scheduling.soonest() == 3 * MINUTE

    def test_a_boundary_whose_job_was_purged_does_not_fire_again(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.tick(now_ms=MINUTE)
        scheduling.cancel("beat-60000", now_ms=MINUTE)
        scheduling.purge("beat-60000", now_ms=MINUTE)
        scheduling.unregister_schedule("beat")
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        assert [fire.created for fire in scheduling.tick(now_ms=MINUTE)] == [False]
        assert scheduling.get_job("beat-60000") is None

    def test_a_fire_into_a_paused_queue_waits_there(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        scheduling.pause("default", now_ms=1)
        assert len(scheduling.tick(now_ms=MINUTE)) == 1
        assert job_of(scheduling, "beat-60000").state == "queued"

    def test_the_soonest_of_all_is_reported_even_when_it_has_passed(self, scheduling: Ledger) -> None:
        assert scheduling.soonest() is None
        scheduling.register_schedule(replace(EVERY_MINUTE, name="slow", every="@every 1h"), now_ms=0)
        scheduling.register_schedule(replace(EVERY_MINUTE, name="fast"), now_ms=0)
        assert scheduling.soonest() == MINUTE
        scheduling.tick(now_ms=59 * MINUTE)
        assert scheduling.soonest() == 60 * MINUTE

    def test_a_schedule_survives_its_connection(
        self, scheduling: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        scheduling.register_schedule(EVERY_MINUTE, now_ms=0)
        assert len(make_ledger().tick(now_ms=MINUTE)) == 1
        assert make_ledger().tick(now_ms=MINUTE) == []

    def test_of_ten_tickers_at_once_each_boundary_fires_once(
        self, scheduling: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        ledgers = [make_ledger() for _ in range(10)]
        scheduling.register_schedule(replace(EVERY_MINUTE, every="@every 1s"), now_ms=0)
        for n in range(1, 6):
            now_ms = n * 3 * SECOND
            fires = together(partial(ledger.tick, now_ms=now_ms) for ledger in ledgers)
            boundaries = sorted(fire.boundary_ms for each in fires for fire in each)
            assert boundaries == [now_ms - 2 * SECOND, now_ms - SECOND, now_ms]
            assert scheduling.counts()["queued"] == 3 * n
