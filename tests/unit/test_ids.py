"""Ids that are computed: the same for the same parts in the same period, different for any others."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.core import InvalidInput, unique_id
from fencepost.core.model.inputs import is_name
from hypothesis import given
from hypothesis import strategies as st

HOUR = 3_600_000

part = st.one_of(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.integers())


@given(st.lists(part, min_size=1, max_size=4))
def test_every_unique_id_is_an_id(parts: list[Any]) -> None:
    assert is_name(unique_id(*parts))


@given(st.lists(part, min_size=1, max_size=3), st.lists(part, min_size=1, max_size=3))
def test_ids_are_equal_if_and_only_if_their_parts_are(one: list[Any], other: list[Any]) -> None:
    assert (unique_id(*one) == unique_id(*other)) is (one == other)


def test_an_id_is_the_same_in_every_version_of_the_program() -> None:
    # By sha256sum, of [["report",7],null] and of [["古池"],[3600000,0]].
    assert unique_id("report", 7) == "u-b93365fe2acad42a17ea02704891eb6ac9b34fb6"
    assert unique_id("古池", per="1h", at_ms=0) == "u-3550ba5a0a9424bff5e6d846955b2edfd4a70045"


@pytest.mark.parametrize(
    ("one", "other"), [(("ab",), ("a", "b")), (("7",), (7,)), (("",), ("", "")), (("é",), ("e\u0301",))]
)
def test_parts_are_told_apart(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert unique_id(*one) != unique_id(*other)


def test_an_id_is_the_same_through_its_period_and_another_in_the_next() -> None:
    ids = [unique_id("a", per="1h", at_ms=at_ms) for at_ms in (HOUR, 2 * HOUR - 1, 2 * HOUR)]
    assert ids[0] == ids[1] != ids[2]


def test_periods_of_one_beginning_and_other_lengths_are_different() -> None:
    assert len({unique_id("a", per=per, at_ms=0) for per in ("1h", "2h", "1d")} | {unique_id("a")}) == 4


def test_one_length_in_two_spellings_is_one_period() -> None:
    assert unique_id("a", per="60m", at_ms=HOUR) == unique_id("a", per="1h", at_ms=HOUR)


@pytest.mark.parametrize(
    ("parts", "options", "said"),
    [
        ((), {}, "at least one part"),
        ((1.5,), {}, "part 1 must be a string or a whole number, not float"),
        (("a", True), {}, "part 2 must be a string or a whole number, not bool"),
        (("\ud800",), {}, "part 1 has a lone surrogate"),
        (("a",), {"per": "soon"}, "per 'soon': must be a number and one unit"),
        (("a",), {"per": "0s"}, "longer than 0"),
        (("a",), {"per": 60}, "per must be a span"),
        (("a",), {"per": "1h", "at_ms": -1}, "at_ms"),
        (("a",), {"at_ms": 5}, "say how long it is with per"),
    ],
)
def test_what_makes_no_id_is_refused(parts: tuple[Any, ...], options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        unique_id(*parts, **options)
    assert said in str(refusal.value)
