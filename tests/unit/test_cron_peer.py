"""The next boundary of random cron expressions, compared with croniter's: every difference has its reason here."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from croniter import croniter
from fencepost.core import InvalidInput
from fencepost.core.model.cron import next_boundary_ms, parse_cron

from tests.unit.zones import ZONES, changes_ms, ms, written, zone_of

PAIRS = 5_000
MINUTE = 60_000


def field(draw: random.Random, low: int, high: int, restricted: float) -> str:
    if draw.random() > restricted:
        return "*"
    kind = draw.random()
    if kind < 0.25:
        return f"*/{draw.randint(2, 20)}"
    if kind < 0.4:
        # Of two different numbers: croniter 7.0 takes 6-6 for the whole range of the field.
        first = draw.randint(low, high - 1)
        return f"{first}-{draw.randint(first + 1, high)}"
    return ",".join(map(str, sorted(draw.sample(range(low, high + 1), draw.randint(1, 3)))))


def instant(draw: random.Random, zone: str) -> int:
    """Half of them within two days of a change of the zone's clock."""
    if draw.random() < 0.5:
        return draw.choice(changes_ms(zone)) + draw.randint(-2_880, 2_880) * MINUTE
    return draw.randint(ms("1995-01-01T00:00+00:00") // 1_000, ms("2045-01-01T00:00+00:00") // 1_000) * 1_000


def theirs_ms(expression: str, zone: str, after_ms: int) -> int:
    # Vixie's rule for days, which is ours: they must both match where one of the fields begins with a star.
    start = datetime.fromtimestamp(after_ms / 1_000, UTC).astimezone(zone_of(zone))
    moment = croniter(expression, start, implement_cron_bug=True).get_next(datetime)
    return round(moment.timestamp() * 1_000)


def reason(follows_elapsed_time: bool, zone: str, theirs: int) -> str | None:
    """Why croniter's instant is not ours; None: for no reason that is known."""
    tz = zone_of(zone)
    local = datetime.fromtimestamp(theirs / 1_000, UTC).astimezone(tz)
    before = datetime.fromtimestamp(theirs / 1_000 - 60, UTC).astimezone(tz)
    if follows_elapsed_time and local.utcoffset() != before.utcoffset():
        return "croniter fires at the end of a gap though a star stands in the minute or in the hour"
    if not follows_elapsed_time and local.fold:
        return "croniter fires a fixed time when it comes for the second time"
    return None


def test_croniter_finds_the_same_boundaries_but_for_two_reasons() -> None:
    draw, compared, unexplained = random.Random(2026), 0, []
    while compared < PAIRS:
        zone = draw.choice(ZONES)
        expression = " ".join(
            [
                field(draw, 0, 59, 0.65),
                field(draw, 0, 23, 0.65),
                field(draw, 1, 31, 0.3),
                field(draw, 1, 12, 0.2),
                field(draw, 0, 6, 0.3),
            ]
        )
        after_ms = instant(draw, zone)
        try:
            cron = parse_cron(expression)
        except InvalidInput:  # such as 31 April
            continue
        compared += 1
        ours, theirs = next_boundary_ms(cron, zone, after_ms), theirs_ms(expression, zone, after_ms)
        if ours != theirs and reason(cron.follows_elapsed_time, zone, theirs) is None:
            assert ours is not None
            unexplained.append(
                f"{expression} {zone} after {written(after_ms, zone)}: {written(ours, zone)}, "
                f"croniter {written(theirs, zone)}"
            )
    assert unexplained == []
