"""What a person does with schedules: pausing, running by hand, and applying a whole set of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from ..errors import InvalidInput
from ..ledgers.protocol import Ledger
from ..model.records import Applied, Schedule
from .base import Contract, enqueue, ids, job_of
from .races import together

MINUTE = 60_000
BEAT = Schedule("beat", "@every 1m", "tick tock")
DAILY = Schedule("daily", "@daily", "report", zone="Europe/Berlin")


def actions(ledger: Ledger) -> list[tuple[str, str, str | None]]:
    """What was recorded: action, name, actor."""
    return [(entry.action, entry.id, entry.actor) for entry in ledger.audit()]


class ScheduleOperatorContract(Contract):
    """Each action is recorded with itself."""

    @pytest.fixture
    def scheduling(self, ledger: Ledger) -> Ledger:
        """A ledger that has schedules."""
        if not ledger.capabilities.has_schedules:
            pytest.skip("has_schedules: this ledger has none")
        return ledger

    # -- pauses --

    def test_a_paused_schedule_does_not_fire(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(BEAT, now_ms=0)
        assert scheduling.pause_schedule("beat", actor="me", now_ms=1) is True
        assert scheduling.pause_schedule("beat", now_ms=2) is False
        assert scheduling.tick(now_ms=5 * MINUTE) == []
        assert scheduling.soonest() is None
        assert [schedule.paused for schedule in scheduling.schedules()] == [True]
        assert actions(scheduling) == [("schedule-pause", "beat", "me")]

    def test_a_resumed_schedule_goes_on_in_its_phase_after_now(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(BEAT, now_ms=7)
        scheduling.pause_schedule("beat", now_ms=8)
        assert scheduling.resume_schedule("beat", actor="me", now_ms=10 * MINUTE) is True
        assert scheduling.resume_schedule("beat", now_ms=10 * MINUTE) is False
        assert scheduling.soonest() == 10 * MINUTE + 7
        assert scheduling.tick(now_ms=10 * MINUTE) == [], "what passed meanwhile does not fire"
        assert len(scheduling.tick(now_ms=10 * MINUTE + 7)) == 1
        assert actions(scheduling)[1:] == [("schedule-resume", "beat", "me")]

    def test_registering_again_does_not_end_a_pause(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(BEAT, now_ms=0)
        scheduling.pause_schedule("beat", now_ms=1)
        scheduling.register_schedule(replace(BEAT, every="@every 1s"), now_ms=2)
        assert scheduling.tick(now_ms=5 * MINUTE) == []

    def test_a_schedule_that_is_not_there_cannot_be_paused(self, scheduling: Ledger) -> None:
        assert scheduling.pause_schedule("beat", now_ms=1) is False
        assert scheduling.resume_schedule("beat", now_ms=1) is False
        assert actions(scheduling) == []

    # -- runs by hand --

    def test_a_run_by_hand_fires_now_and_leaves_the_boundaries(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(replace(BEAT, queue="mail", expires_s=9), now_ms=0)
        fire = scheduling.run_schedule("beat", actor="me", reason="late", now_ms=123)
        assert fire is not None
        assert (fire.id, fire.created) == ("beat-123", True)
        job = job_of(scheduling, "beat-123")
        assert (job.queue, job.expires_at_ms) == ("mail", 9_123)
        assert scheduling.soonest() == MINUTE
        assert actions(scheduling) == [("schedule-run", "beat", "me")]

    def test_a_run_by_hand_of_the_same_instant_is_one(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(BEAT, now_ms=0)
        fires = [scheduling.run_schedule("beat", now_ms=MINUTE) for _ in range(2)]
        assert [fire.created for fire in fires if fire is not None] == [True, False]
        assert [fire.created for fire in scheduling.tick(now_ms=MINUTE)] == [False]

    def test_a_paused_schedule_can_be_run_by_hand(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(BEAT, now_ms=0)
        scheduling.pause_schedule("beat", now_ms=1)
        fire = scheduling.run_schedule("beat", now_ms=2)
        assert fire is not None
        assert fire.created

    def test_a_run_by_hand_does_not_overlap_where_the_schedule_says_so(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(replace(BEAT, overlap="skip"), now_ms=0)
        scheduling.run_schedule("beat", now_ms=1)
        fire = scheduling.run_schedule("beat", now_ms=2)
        assert fire is not None
        assert (fire.created, fire.unfinished) == (False, "beat-1")
        assert [one.unfinished for one in scheduling.tick(now_ms=MINUTE)] == ["beat-1"]
        assert len(actions(scheduling)) == 1, "what was not done is not recorded"

    def test_a_schedule_that_is_not_there_cannot_be_run(self, scheduling: Ledger) -> None:
        assert scheduling.run_schedule("beat", now_ms=1) is None
        assert scheduling.counts()["queued"] == 0

    # -- applying --

    def test_applying_adds_changes_and_removes_in_one_step(self, scheduling: Ledger) -> None:
        scheduling.register_schedule(replace(BEAT, name="by-hand"), now_ms=0)
        first = scheduling.apply_schedules([BEAT, DAILY], actor="me", now_ms=0)
        assert first == Applied(["beat", "daily"], [], [], [])
        second = scheduling.apply_schedules(
            [replace(BEAT, text="other"), replace(BEAT, name="new")], now_ms=MINUTE // 2
        )
        assert second == Applied(["new"], ["beat"], ["daily"], [])
        assert [(one.name, one.owner, one.next_ms) for one in scheduling.schedules()] == [
            ("beat", "config", MINUTE),
            ("by-hand", None, MINUTE),
            ("new", "config", MINUTE + MINUTE // 2),
        ]
        assert actions(scheduling) == [
            ("schedule-add", "beat", "me"),
            ("schedule-add", "daily", "me"),
            ("schedule-add", "new", None),
            ("schedule-change", "beat", None),
            ("schedule-remove", "daily", None),
        ]

    def test_applying_the_same_again_changes_nothing(self, scheduling: Ledger) -> None:
        scheduling.apply_schedules([BEAT, DAILY], now_ms=0)
        scheduling.pause_schedule("beat", now_ms=1)
        before, recorded = scheduling.schedules(), actions(scheduling)
        assert scheduling.apply_schedules([DAILY, BEAT], now_ms=5) == Applied([], [], [], ["beat", "daily"])
        assert scheduling.schedules() == before
        assert actions(scheduling) == recorded

    def test_a_dry_run_says_what_would_be_done(self, scheduling: Ledger) -> None:
        scheduling.apply_schedules([BEAT], now_ms=0)
        done = scheduling.apply_schedules([DAILY], dry_run=True, now_ms=1)
        assert done == Applied(["daily"], [], ["beat"], [])
        assert [schedule.name for schedule in scheduling.schedules()] == ["beat"]

    def test_each_owner_has_its_own(self, scheduling: Ledger) -> None:
        scheduling.apply_schedules([BEAT], owner="shop", now_ms=0)
        scheduling.apply_schedules([DAILY], owner="office", now_ms=0)
        scheduling.apply_schedules([], owner="shop", now_ms=1)
        assert [(one.name, one.owner) for one in scheduling.schedules()] == [("daily", "office")]

    @pytest.mark.parametrize("taken_by", [None, "office"])
    def test_a_name_that_somebody_else_has_is_refused_and_nothing_is_changed(
        self, scheduling: Ledger, taken_by: str | None
    ) -> None:
        if taken_by is None:
            scheduling.register_schedule(BEAT, now_ms=0)
        else:
            scheduling.apply_schedules([BEAT], owner=taken_by, now_ms=0)
        before = scheduling.schedules()
        with pytest.raises(InvalidInput, match="beat"):
            scheduling.apply_schedules([replace(BEAT, text="mine"), DAILY], now_ms=1)
        assert scheduling.schedules() == before

    def test_what_was_applied_is_not_replaced_by_hand(self, scheduling: Ledger) -> None:
        scheduling.apply_schedules([BEAT], now_ms=0)
        with pytest.raises(InvalidInput, match="apply it again"):
            scheduling.register_schedule(replace(BEAT, text="by hand"), now_ms=1)
        assert scheduling.unregister_schedule("beat")

    @pytest.mark.parametrize(
        "wrong", [[BEAT, BEAT], [replace(BEAT, every="never")], [replace(BEAT, name="B")]]
    )
    def test_a_set_with_a_fault_is_refused_as_a_whole(
        self, scheduling: Ledger, wrong: list[Schedule]
    ) -> None:
        with pytest.raises(InvalidInput):
            scheduling.apply_schedules([DAILY, *wrong], now_ms=0)
        assert scheduling.schedules() == []

    def test_of_two_sets_applied_at_once_one_stands_whole(
        self, scheduling: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        sets = [[replace(BEAT, name=f"{who}-{n}") for n in range(5)] for who in ("a", "b")]
        sets = [[*one, replace(DAILY, text=f"of {number}")] for number, one in enumerate(sets)]
        ledgers = [make_ledger() for _ in range(6)]
        for turn in range(5):
            together(
                partial(ledger.apply_schedules, sets[place % 2], now_ms=turn)
                for place, ledger in enumerate(ledgers)
            )
            found = [(schedule.name, schedule.text) for schedule in scheduling.schedules()]
            assert found in [[(one.name, one.text) for one in wanted] for wanted in sets]

    def test_what_was_fired_stays_when_its_schedule_is_removed(self, scheduling: Ledger) -> None:
        enqueue(scheduling, "other")
        scheduling.apply_schedules([BEAT], now_ms=0)
        scheduling.tick(now_ms=MINUTE)
        scheduling.apply_schedules([], now_ms=MINUTE)
        assert ids(scheduling.jobs().jobs) == ["other", "beat-60000"]
