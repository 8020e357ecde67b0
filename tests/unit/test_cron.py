"""When cron expressions fire: the tables of real changes of the clock, and every minute of them against the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from fencepost.core import InvalidInput
from fencepost.core.model.cron import NICKNAMES, next_boundary_ms, parse_cron
from fencepost.core.model.zones import check_zone
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.zones import ZONES, changes_ms, ms, written, zone_of

MINUTE = 60_000


def boundaries(expression: str, zone: str, after: str, count: int) -> list[str]:
    found, at_ms = [], ms(after)
    for _ in range(count):
        following = next_boundary_ms(parse_cron(expression), zone, at_ms)
        assert following is not None
        assert following > at_ms
        at_ms = following
        found.append(written(at_ms, zone))
    return found


@pytest.mark.parametrize(
    ("expression", "zone", "after", "want"),
    [
        # Berlin, 29 March 2026: 02:00 becomes 03:00. Fixed times in the gap fire at 03:00, with what is due then.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00+01:00",
            ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"],
        ),
        (
            "0,30 2,3 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00+01:00",
            ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00", "2026-03-30T02:00+02:00"],
        ),
        (
            "0 9 * * mon-fri",
            "Europe/Berlin",
            "2026-03-27T09:00+01:00",
            ["2026-03-30T09:00+02:00", "2026-03-31T09:00+02:00"],
        ),
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-03-29T01:00+01:00",
            ["2026-03-29T01:30+01:00", "2026-03-29T03:30+02:00"],
        ),
        ("*/20 2 * * *", "Europe/Berlin", "2026-03-28T02:40+01:00", ["2026-03-30T02:00+02:00"]),
        ("0 */2 * * *", "Europe/Berlin", "2026-03-29T00:00+01:00", ["2026-03-29T04:00+02:00"]),
        # Berlin, 25 October 2026: 03:00 becomes 02:00. A fixed time fires the first time only.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T00:00+02:00",
            ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"],
        ),
        ("0 3 * * *", "Europe/Berlin", "2026-10-25T00:00+02:00", ["2026-10-25T03:00+01:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10+01:00", ["2026-10-26T02:30+01:00"]),
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-25T02:00+02:00",
            ["2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00", "2026-10-25T03:30+01:00"],
        ),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T01:00+02:00",
            [
                "2026-10-25T02:00+02:00",
                "2026-10-25T02:30+02:00",
                "2026-10-25T02:00+01:00",
                "2026-10-25T02:30+01:00",
                "2026-10-26T02:00+01:00",
            ],
        ),
        # New York, 8 March and 1 November 2026.
        (
            "15 2 * * *",
            "America/New_York",
            "2026-03-07T12:00-05:00",
            ["2026-03-08T03:00-04:00", "2026-03-09T02:15-04:00"],
        ),
        (
            "15 1 * * *",
            "America/New_York",
            "2026-10-31T12:00-04:00",
            ["2026-11-01T01:15-04:00", "2026-11-02T01:15-05:00"],
        ),
        (
            "0 * * * *",
            "America/New_York",
            "2026-11-01T00:30-04:00",
            ["2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"],
        ),
        # Lord Howe changes by half an hour: 5 April 2026 from 02:00 to 01:30, 4 October from 02:00 to 02:30.
        (
            "0 * * * *",
            "Australia/Lord_Howe",
            "2026-04-05T00:30+11:00",
            ["2026-04-05T01:00+11:00", "2026-04-05T02:00+10:30", "2026-04-05T03:00+10:30"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-05T00:00+11:00",
            ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"],
        ),
        (
            "45 * * * *",
            "Australia/Lord_Howe",
            "2026-04-05T01:00+11:00",
            ["2026-04-05T01:45+11:00", "2026-04-05T01:45+10:30", "2026-04-05T02:45+10:30"],
        ),
        ("0 2 * * *", "Australia/Lord_Howe", "2026-04-05T00:00+11:00", ["2026-04-05T02:00+10:30"]),
        (
            "0 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00+10:30",
            ["2026-10-04T02:30+11:00", "2026-10-05T02:00+11:00"],
        ),
        ("0 * * * *", "Australia/Lord_Howe", "2026-10-04T01:00+10:30", ["2026-10-04T03:00+11:00"]),
        # Casablanca sets its clock back for Ramadan: on 15 February 2026 at 03:00, and on again on 22 March.
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-02-15T00:00+01:00",
            ["2026-02-15T02:30+01:00", "2026-02-16T02:30+00:00"],
        ),
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-03-21T12:00+00:00",
            ["2026-03-22T03:00+01:00", "2026-03-23T02:30+01:00"],
        ),
        # São Paulo, 4 November 2018: midnight does not exist; on 18 February 2018 the hour before midnight came twice.
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            "2018-11-03T12:00-03:00",
            ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"],
        ),
        (
            "@daily",
            "America/Sao_Paulo",
            "2018-02-17T12:00-02:00",
            ["2018-02-18T00:00-03:00", "2018-02-19T00:00-03:00"],
        ),
        (
            "30 23 * * *",
            "America/Sao_Paulo",
            "2018-02-17T12:00-02:00",
            ["2018-02-17T23:30-02:00", "2018-02-18T23:30-03:00"],
        ),
        (
            "@hourly",
            "America/Sao_Paulo",
            "2018-02-17T22:30-02:00",
            ["2018-02-17T23:00-02:00", "2018-02-17T23:00-03:00", "2018-02-18T00:00-03:00"],
        ),
        # Apia had no 30 December 2011: what was due on it fires once, when the 31st begins.
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T09:00-10:00",
            ["2011-12-31T00:00+14:00", "2011-12-31T09:00+14:00"],
        ),
        (
            "0 0,9,17 30 12 *",
            "Pacific/Apia",
            "2011-01-01T00:00-11:00",
            ["2011-12-31T00:00+14:00", "2012-12-30T00:00+14:00"],
        ),
        (
            "@hourly",
            "Pacific/Apia",
            "2011-12-29T22:00-10:00",
            ["2011-12-29T23:00-10:00", "2011-12-31T00:00+14:00"],
        ),
        # St. John's set its clock back at 00:01 until 2011: on 7 November 2010 the 6th came again for an hour.
        ("* * 6 11 *", "America/St_Johns", "2010-11-07T00:00-02:30", ["2010-11-06T23:01-03:30"]),
        (
            "*/30 * 6,7 11 *",
            "America/St_Johns",
            "2010-11-06T23:00-02:30",
            [
                "2010-11-06T23:30-02:30",
                "2010-11-07T00:00-02:30",
                "2010-11-06T23:30-03:30",
                "2010-11-07T00:00-03:30",
            ],
        ),
        (
            "0 0 * * *",
            "America/St_Johns",
            "2010-11-06T12:00-02:30",
            ["2010-11-07T00:00-02:30", "2010-11-08T00:00-03:30"],
        ),
        # 29 February: 2100 is no leap year.
        (
            "0 12 29 2 *",
            "Europe/Berlin",
            "2026-01-01T00:00+01:00",
            ["2028-02-29T12:00+01:00", "2032-02-29T12:00+01:00"],
        ),
        ("0 12 29 2 *", "UTC", "2096-03-01T00:00+00:00", ["2104-02-29T12:00+00:00"]),
        ("0 0 29 2 */7", "UTC", "2088-03-01T00:00+00:00", ["2128-02-29T00:00+00:00"]),
    ],
)
def test_the_calendars_own_traps(expression: str, zone: str, after: str, want: list[str]) -> None:
    assert boundaries(expression, zone, after, len(want)) == want


@pytest.mark.parametrize(("name", "fields"), NICKNAMES.items())
def test_a_nickname_is_its_five_fields(name: str, fields: str) -> None:
    assert parse_cron(name) == parse_cron(fields)


def test_days_of_month_and_week_are_either_unless_one_is_a_star() -> None:
    either = boundaries("0 0 13 * fri", "UTC", "2026-02-01T00:00+00:00", 3)
    assert either == ["2026-02-06T00:00+00:00", "2026-02-13T00:00+00:00", "2026-02-20T00:00+00:00"]
    both = boundaries("0 0 */13 * fri", "UTC", "2026-02-01T00:00+00:00", 2)
    assert both == ["2026-02-27T00:00+00:00", "2026-03-27T00:00+00:00"]
    assert boundaries("0 0 * * 7", "UTC", "2026-02-01T00:00+00:00", 1) == ["2026-02-08T00:00+00:00"]
    assert boundaries("0 0 * * mon#2", "UTC", "2026-02-01T00:00+00:00", 1) == ["2026-02-09T00:00+00:00"]


def test_a_boundary_lies_strictly_after_the_instant() -> None:
    at_ms = ms("2026-06-01T09:00+02:00")
    nine = parse_cron("0 9 * * *")
    assert next_boundary_ms(nine, "Europe/Berlin", at_ms - 1) == at_ms
    assert next_boundary_ms(nine, "Europe/Berlin", at_ms) == at_ms + 24 * 60 * MINUTE
    assert next_boundary_ms(nine, "Europe/Berlin", at_ms + 1) == at_ms + 24 * 60 * MINUTE


def test_the_calendar_ends() -> None:
    assert next_boundary_ms(parse_cron("@daily"), "UTC", 2**53 - 1) is None


@pytest.mark.parametrize(
    "expression",
    [
        "", " ", "* * * *", "* * * * * *", "0 0 12 * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
        "* * * * 8", "* * L * *", "* * LW * *", "* * 15W * *", "* * * * 5L", "*/0 * * * *", "5-1 * * * *",
        "1,, * * * *", "-1 * * * *", "1.5 * * * *", "٣ * * * *", "* * * * *\n", "\n* * * * *",
        " * * * * *", "*\u00a0* * * *",
        "@midnight", "@annually", "@reboot", "@Daily", "0 0 30 2 *", "0 0 31 4,6 *", "0 0 */40 * mon#5", "? * * * *",
        "0 9 * * monday", "H * * * *", "0," * 200 + "0 * * * *",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_name(expression: str) -> None:
    with pytest.raises(InvalidInput, match="schedule"):
        parse_cron(expression)


@pytest.mark.parametrize(
    "name", ["", "Berlin", "europe/berlin", "Europe/", "../Europe/Berlin", "CEST+1\0", "Mars/Base", 3, None]
)
def test_a_zone_is_a_name_of_the_tz_database(name: object) -> None:
    with pytest.raises(InvalidInput, match="zone"):
        check_zone(name)


def test_a_zone_that_is_misspelt_is_told_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'Europe/Berlin'"):
        check_zone("europe/berlin")


# -- the rules again, minute by minute --


@dataclass(frozen=True)
class Drawn:
    """An expression as text, and what its fields mean."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]
    elapsed: bool

    def matches(self, local: datetime) -> bool:
        return (
            local.minute in self.minutes
            and local.hour in self.hours
            and local.isoweekday() % 7 in self.weekdays
        )


def _field(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    numbers = st.sets(st.integers(low, high), min_size=1, max_size=4)
    return st.one_of(
        st.just(("*", frozenset(range(low, high + 1)))),
        st.integers(2, 30).map(lambda n: (f"*/{n}", frozenset(range(low, high + 1, n)))),
        numbers.map(lambda found: (",".join(map(str, sorted(found))), frozenset(found))),
    )


drawn = st.builds(
    lambda minute, hour, week: Drawn(
        f"{minute[0]} {hour[0]} * * {week[0]}", minute[1], hour[1], week[1], "*" in minute[0] + hour[0]
    ),
    _field(0, 59),
    _field(0, 23),
    _field(0, 6),
)


def minute_by_minute(cron: Drawn, zone: str, from_ms: int, until_ms: int) -> Iterator[int]:
    """Every minute that fires, by looking at each: the latest local time seen so far tells a jump from a return."""
    tz, seen = zone_of(zone), datetime.min
    for at_ms in range(from_ms - 30 * 60 * MINUTE, until_ms, MINUTE):
        local = datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(tz).replace(tzinfo=None)
        new = 0 if seen == datetime.min else max(0, (local - seen) // timedelta(minutes=1))
        fires = (
            cron.matches(local)
            if cron.elapsed
            else any(cron.matches(local - timedelta(minutes=back)) for back in range(new))
        )
        seen = max(seen, local)
        if fires and at_ms > from_ms:
            yield at_ms


@given(drawn, st.sampled_from(ZONES), st.integers(0, 10_000), st.integers(-26 * 60, 26 * 60))
@example(Drawn("0 0 * * *", frozenset([0]), frozenset([0]), frozenset(range(7)), False), "Pacific/Apia", 4, 0)
def test_around_each_change_of_the_clock_every_minute_is_as_the_rules_say(
    cron: Drawn, zone: str, change: int, minutes: int
) -> None:
    changes = changes_ms(zone)
    after_ms = changes[change % len(changes)] + minutes * MINUTE
    want = next(minute_by_minute(cron, zone, after_ms, after_ms + 50 * 60 * MINUTE), None)
    found = next_boundary_ms(parse_cron(cron.text), zone, after_ms)
    assert found is not None
    if want is None:
        assert found >= after_ms + 50 * 60 * MINUTE
    else:
        assert (found, written(found, zone)) == (want, written(want, zone))
