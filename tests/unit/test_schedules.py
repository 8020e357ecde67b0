"""The arithmetic of ``@every``: what is a spec, which boundaries fire, and where the phase goes on."""

import pytest
from fencepost.core import (
    InvalidInput,
    LimitExceeded,
    NewJob,
    Schedule,
    Stamps,
)
from fencepost.core.model.schedules import check_schedule, fired_job
from fencepost.core.model.timetable import FIRES_PER_TICK, Calendar, Every, boundaries, parse_every, timetable
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("spec", "every_ms"),
    [
        ("@every 1s", 1_000),
        ("@every 90s", 90_000),
        ("@every 15m", 900_000),
        ("@every 2h", 7_200_000),
        ("@every 7d", 604_800_000),
    ],
)
def test_a_spec_is_a_whole_number_and_one_unit(spec: str, every_ms: int) -> None:
    assert parse_every(spec) == every_ms


@pytest.mark.parametrize(
    "spec",
    [
        "", "@every", "@every ", "@every 0s", "@every 01s", "@every -1s", "@every +1s", "@every 1.5h", "@every 1w",
        "@every 1ms", "@every 1h30m", "@every  1s", " @every 1s", "@every 1s ", "@every 1s\n", "@every 1 s",
        "@every 1S", "@EVERY 1s", "every 1s", "@daily", "* * * * *", "@every ١s", "@every 1_0s", "@every s",
    ],
)  # fmt: skip
def test_anything_else_is_refused_by_name(spec: str) -> None:
    with pytest.raises(InvalidInput, match="@every N"):
        parse_every(spec)


@pytest.mark.parametrize(
    "spec", ["@every 104249992d", "@every " + "9" * 16 + "s", "@every " + "9" * 10_000 + "d"]
)
def test_a_period_longer_than_the_clock_is_refused(spec: str) -> None:
    with pytest.raises(LimitExceeded):
        parse_every(spec)


@pytest.mark.parametrize(
    ("now_ms", "fired", "next_ms"),
    [(99, [], 100), (100, [100], 110), (109, [100], 110), (110, [100, 110], 120), (111, [100, 110], 120)],
)
def test_a_boundary_fires_at_its_instant_and_not_before(now_ms: int, fired: list[int], next_ms: int) -> None:
    table = Every(10, 100)
    assert boundaries(table, 100, now_ms, "all") == fired
    assert table.after(now_ms) == next_ms


def test_a_long_absence_fires_the_oldest_boundaries_up_to_the_cap() -> None:
    fired = boundaries(Every(10, 100), 100, 100 + 10 * 1_000, "all")
    assert fired == [100 + 10 * place for place in range(FIRES_PER_TICK)]


@given(st.integers(0, 2**50), st.integers(1, 2**40), st.integers(0, 2**50))
def test_the_phase_is_kept_and_the_next_boundary_lies_strictly_ahead(
    phase_ms: int, every_ms: int, now_ms: int
) -> None:
    after_ms = Every(every_ms, phase_ms).after(now_ms)
    assert after_ms is not None
    assert now_ms < after_ms <= now_ms + every_ms
    assert (after_ms - phase_ms) % every_ms == 0


TABLES = st.one_of(
    st.builds(Every, st.integers(1_000, 10**9), st.integers(0, 10**9)),
    st.sampled_from(
        [
            timetable(every, zone, 0)
            for every in ("* * * * *", "*/7 3 * * *", "30 2 * * sun", "0 0 29 2 *", "@hourly")
            for zone in ("UTC", "Europe/Berlin", "Australia/Lord_Howe")
        ]
    ),
)


@given(TABLES, st.integers(0, 2**41), st.integers(0, 10**10), st.sampled_from(["all", "latest", "none"]))
def test_what_was_missed_is_all_the_latest_or_none(
    table: Every | Calendar, from_ms: int, span_ms: int, missed: str
) -> None:
    """Compared with a walk over the boundaries one by one, as far as a short span goes."""
    first_ms = table.after(from_ms)
    assert first_ms is not None
    now_ms = first_ms + min(span_ms, 2_000 * 60_000)
    passed = [first_ms]
    while (following := table.after(passed[-1])) is not None and following <= now_ms:
        passed.append(following)
    want = {
        "all": passed[:64],
        "latest": passed[-1:],
        "none": [one for one in passed if now_ms - one <= 60_000][:64],
    }
    assert boundaries(table, first_ms, now_ms, missed) == want[missed]


def test_the_latest_of_years_of_minutes_is_found_at_once() -> None:
    table, years_ms = timetable("* * * * *", "Europe/Berlin", 0), 30 * 365 * 86_400_000
    assert boundaries(table, 60_000, years_ms + 61_234, "latest") == [years_ms + 60_000]


def test_a_fired_job_carries_what_the_schedule_says() -> None:
    stamps = Stamps(max_attempts=7)
    schedule = Schedule(
        "nightly", "@every 1d", "text", "reports", "render", -3, expires_s=0.07, stamps=stamps
    )
    assert fired_job(schedule, 5_000) == NewJob(
        "nightly-5000", "text", "reports", "render", -3, run_at_ms=None, expires_at_ms=5_070, stamps=stamps
    )


def test_a_schedule_without_expiry_fires_jobs_without_expiry() -> None:
    assert fired_job(Schedule("nightly", "@every 1d", ""), 5).expires_at_ms is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "a" * 51}, "at most 50"),
        ({"name": "Nightly"}, "schedule name"),
        ({"every": "@midnight"}, "@every N"),
        ({"every": "@daily", "zone": "Berlin"}, "zone"),
        ({"zone": "Europe/Berlin"}, "takes no zone"),
        ({"missed": "some"}, "missed"),
        ({"overlap": "wait"}, "overlap"),
        ({"every": 5}, "must be a string"),
        ({"text": "\ud800"}, "surrogate"),
        ({"text": "x" * 1_000_001}, "1,000,000"),
        ({"queue": "no queue"}, "queue"),
        ({"effect": ""}, "effect"),
        ({"priority": 2**31}, "priority"),
        ({"expires_s": 0}, "expires_s"),
        ({"expires_s": float("nan")}, "expires_s"),
        ({"expires_s": True}, "expires_s"),
        ({"stamps": Stamps(max_attempts=0)}, "max_attempts"),
    ],
)
def test_a_schedule_whose_jobs_would_break_a_rule_is_refused(change: dict[str, object], message: str) -> None:
    fields = {"name": "nightly", "every": "@every 1d", "text": "t"} | change
    with pytest.raises(InvalidInput, match=message):
        check_schedule(Schedule(**fields))  # type: ignore[arg-type]
