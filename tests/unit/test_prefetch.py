"""How much a worker claims ahead, and how long what has finished waits for company."""

from __future__ import annotations

import pytest
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.prefetch import (
    MAX_FLUSH_S,
    MAX_PREFETCH,
    MIN_FLUSH_S,
    Pace,
)


def pace(*, one_at_a_time: bool = False, **options: object) -> Pace:
    return Pace(WorkerOptions("w", **options), one_at_a_time=one_at_a_time)  # type: ignore[arg-type]


def room(pace: Pace) -> int:
    return pace.room(waiting=0, outstanding=0)


@pytest.mark.parametrize("how", [{"max_jobs": 99}, {"delay_ms": 1}, {"one_at_a_time": True}])
def test_a_worker_that_is_bounded_or_stalls_or_crashes_claims_what_a_slot_can_start(
    how: dict[str, int],
) -> None:
    careful = pace(**how, concurrency=3)  # type: ignore[arg-type]
    slots = 1 if "one_at_a_time" in how else 3
    for _ in range(20):
        careful.took([0.0001] * 9)
    assert [careful.room(waiting=0, outstanding=outstanding) for outstanding in range(slots + 1)] == list(
        range(slots, -1, -1)
    )


def test_a_following_worker_doubles_what_it_claims_while_jobs_are_quick() -> None:
    quick = pace()
    rooms = []
    for _ in range(12):
        rooms.append(room(quick))
        quick.took([0.0001])
    assert rooms[:5] == [1, 2, 4, 8, 16]
    assert rooms[-1] == MAX_PREFETCH


def test_nothing_is_claimed_ahead_of_slow_jobs() -> None:
    slow = pace(concurrency=4)
    for _ in range(12):
        slow.took([5.0])
    assert room(slow) == 4


def test_what_is_claimed_ahead_will_be_finished_within_an_eighth_of_the_lease() -> None:
    short = pace(lease_ms=80)
    for _ in range(12):
        short.took([0.001])
    assert room(short) == 10


def test_more_is_claimed_when_half_is_gone() -> None:
    quick = pace()
    for _ in range(5):
        quick.took([0.0001])
    assert room(quick) == 32
    assert quick.low(16)
    assert not quick.low(17)


@pytest.mark.parametrize(
    ("turn_s", "flush_s"), [(0.0, MIN_FLUSH_S), (0.004, MIN_FLUSH_S), (0.02, 0.04), (3.0, MAX_FLUSH_S)]
)
def test_what_has_finished_waits_twice_as_long_as_a_turn_takes(turn_s: float, flush_s: float) -> None:
    told = pace()
    assert told.flush_s == MIN_FLUSH_S
    told.exchanged(turn_s)
    assert told.flush_s == flush_s
