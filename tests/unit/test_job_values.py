"""The values that moves work on: stamps, claim requests, and what a job is by default."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.core import (
    ClaimRequest,
    InvalidInput,
    Job,
    Stamps,
)
from fencepost.core.model.job import NO_STAMPS, STATES, whole_ms
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("seconds", "ms"),
    [
        (0, 0),
        (1, 1_000),
        (0.001, 1),
        (0.0001, 1),
        (5e-324, 1),
        (0.07, 70),
        (0.0701, 71),
        (1.1, 1_100),
        (2.675, 2_675),
        (1e-3 + 1e-12, 2),
        (123_456.789, 123_456_789),
    ],
)
def test_seconds_are_whole_milliseconds_rounded_up(seconds: float, ms: int) -> None:
    assert whole_ms(seconds) == ms


@given(st.integers(0, 2**50))
def test_milliseconds_that_became_seconds_come_back(ms: int) -> None:
    assert whole_ms(ms / 1_000) == ms


def test_each_stamp_in_seconds_has_its_milliseconds() -> None:
    stamps = Stamps(0.5, 7, 0.25, 0)
    assert stamps.visibility_timeout_ms == 500
    assert stamps.backoff_base_ms == 250
    assert stamps.dead_letter_retention_ms == 0
    assert Stamps().visibility_timeout_ms is None
    assert Stamps().backoff_base_ms is None
    assert Stamps().dead_letter_retention_ms is None


def test_stamps_come_back_from_milliseconds() -> None:
    assert Stamps.from_ms(500, 7, 250, 0) == Stamps(0.5, 7, 0.25, 0)
    assert Stamps.from_ms(None, None, None, 0) == Stamps(dead_letter_retention_s=0)
    assert Stamps.from_ms(None, 1, None, None) == Stamps(max_attempts=1)
    assert Stamps.from_ms(1, None, None, None) == Stamps(visibility_timeout_s=0.001)
    assert Stamps.from_ms(None, None, 1, None) == Stamps(backoff_base_s=0.001)
    assert Stamps.from_ms(None, None, None, None) is NO_STAMPS


def test_whole_stamps_are_what_a_ledger_keeps() -> None:
    assert Stamps(0.0001, 7, 0.0701, 1e-9).whole() == Stamps(0.001, 7, 0.071, 0.001)
    assert Stamps(1, 2, 3, 4).whole() == Stamps(1, 2, 3, 4)
    assert NO_STAMPS.whole() is NO_STAMPS
    whole = Stamps(0.1, None, 2.675, None).whole()
    assert whole.whole() == whole


def test_a_job_is_queued_by_default_and_nothing_else() -> None:
    job = Job("a")
    assert (job.state, job.version, job.lease_until_ms, job.attempts) == ("queued", 0, 0, 0)
    assert (job.queue, job.effect, job.priority) == ("default", "count", 0)
    assert job.stamps == Stamps()


def test_a_job_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Job("a").state = "dead"  # type: ignore[misc]


def test_there_are_five_states() -> None:
    assert STATES == ("queued", "running", "completed", "dead", "held")


REQUEST = ClaimRequest("worker", lease_ms=1, max_attempts=1)


def test_a_claim_takes_one_job_of_any_queue_and_effect_by_default() -> None:
    assert (REQUEST.limit, REQUEST.queues, REQUEST.effects) == (1, None, None)


@pytest.mark.parametrize("limit", [1, 10_000])
def test_a_claim_takes_1_to_10_000_jobs(limit: int) -> None:
    assert replace(REQUEST, limit=limit).limit == limit


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", 0),
        ("limit", -1),
        ("limit", 10_001),
        ("lease_ms", 0),
        ("lease_ms", -1),
        ("max_attempts", 0),
        ("max_attempts", -1),
    ],
)
def test_a_claim_of_nonsense_is_refused_by_name(field: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=field):
        replace(REQUEST, **{field: value})


@pytest.mark.parametrize(
    ("queues", "effects", "served"),
    [
        (None, None, True),
        (("mail",), None, True),
        (("post", "mail"), None, True),
        (("post",), None, False),
        ((), None, False),
        (None, ("send",), True),
        (None, ("print", "send"), True),
        (None, ("print",), False),
        (None, (), False),
        (("mail",), ("send",), True),
        (("mail",), ("print",), False),
        (("post",), ("send",), False),
    ],
)
def test_a_claim_serves_the_queues_and_effects_that_it_names(
    queues: tuple[str, ...] | None, effects: tuple[str, ...] | None, served: bool
) -> None:
    request = replace(REQUEST, queues=queues, effects=effects)
    assert request.serves(Job("a", queue="mail", effect="send")) is served
