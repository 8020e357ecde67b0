"""Spans and instants, in words and back."""

from __future__ import annotations

import pytest
from fencepost.core import InvalidInput
from fencepost.core.model.durations import (
    calendar,
    parse_span,
    relative,
    words,
)


@pytest.mark.parametrize(
    ("text", "span_ms"),
    [
        ("0s", 0),
        ("250ms", 250),
        ("90s", 90_000),
        ("15m", 900_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1.5h", 5_400_000),
        ("0.25s", 250),
        ("1.1", 1_100),
        ("90", 90_000),
        ("0.0001", 1),
        ("1.0001s", 1_001),
        ("0", 0),
        ("36500d", 100 * 365 * 86_400_000),
    ],
)
def test_a_span_is_a_number_and_a_unit_or_a_number_of_seconds(text: str, span_ms: int) -> None:
    assert parse_span(text, "--older-than") == span_ms


@pytest.mark.parametrize(
    "text", ["", "m", "-5m", "-1", ".5", "5.", "1e3", "nan", "5 m", "5w", "５m", "99999999999999999d", "5m\n"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--older-than .* for example 15m"):
        parse_span(text, "--older-than")


@pytest.mark.parametrize("text", ["36500.1d", "9999999999999d"])
def test_a_span_is_at_most_100_years(text: str) -> None:
    with pytest.raises(InvalidInput, match=r": more than 100 years"):
        parse_span(text)


@pytest.mark.parametrize(
    ("span_ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (90_000, "1 min 30 s"),
        (600_000, "10 min"),
        (629_000, "10 min"),
        (7_500_000, "2 h 5 min"),
        (86_400_000, "1 d"),
        (90_000_000, "1 d 1 h"),
        (40 * 86_400_000, "40 d"),
    ],
)
def test_a_span_is_said_in_its_two_largest_units(span_ms: int, said: str) -> None:
    assert words(span_ms) == said


def test_instants_are_seen_from_now() -> None:
    assert relative(5_000, 5_000) == "now"
    assert relative(17_000, 5_000) == "in 12 s"
    assert relative(5_000, 17_000) == "12 s ago"


def test_an_instant_is_a_date_unless_it_comes_from_a_logical_clock() -> None:
    assert calendar(1_796_000_000_000) == "2026-11-30 00:53:20 UTC"
    assert calendar(110) == "110 ms"
