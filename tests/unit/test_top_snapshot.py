"""What ``top`` makes of one look after another: rates, bars, and how often a large ledger is counted."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.core import ClaimRequest, NewJob
from fencepost.core.cli.top.snapshot import (
    SHARE,
    Rates,
    Sampler,
    sparkline,
)
from fencepost.core.model.queue_counts import QueueCounts
from fencepost.core.testing import ModelLedger


def counted(completed: int, queue: str = "mail") -> list[QueueCounts]:
    return [QueueCounts(queue, completed=completed)]


def test_a_rate_is_how_much_the_completed_jobs_have_grown_in_the_time_between() -> None:
    rates = Rates()
    rates.add(10.0, counted(100))
    assert rates.of("mail") == ()
    rates.add(12.0, counted(150))
    rates.add(16.0, counted(150))
    assert rates.of("mail") == (25.0, 0.0)


def test_a_queue_that_is_new_has_done_all_of_its_jobs_since() -> None:
    rates = Rates()
    rates.add(0.0, [])
    rates.add(2.0, counted(10))
    assert rates.of("mail") == (5.0,)


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    rates = Rates()
    rates.add(1.0, counted(1))
    rates.add(1.0, counted(5))
    assert rates.of("mail") == ()


@pytest.mark.parametrize(
    ("series", "width", "bars"),
    [
        ((), 8, ""),
        ((3.0,), 8, ""),
        ((0.0, 0.0, 0.0), 8, "▁▁▁"),
        ((0.0, 4.0, 8.0), 8, "▁▅█"),
        ((9.0, 0.0, 4.0, 8.0), 3, "▁▅█"),
        (tuple(float(n) for n in range(8)), 8, "▁▂▃▄▅▆▇█"),
    ],
)
def test_bars_show_the_latest_values_by_the_tallest_of_them(
    series: tuple[float, ...], width: int, bars: str
) -> None:
    assert sparkline(series, width) == bars


class SlowToCount(ModelLedger):
    """Takes a second of a clock that the test owns to count its queues."""

    clock_s = 0.0
    counts_made = 0

    def queue_counts(self, **options: Any) -> list[QueueCounts]:
        self.clock_s += 1.0
        self.counts_made += 1
        return super().queue_counts(**options)


def test_a_ledger_that_is_slow_to_count_is_counted_less_often_and_looked_at_all_the_same() -> None:
    ledger = SlowToCount()
    ledger.enqueue([NewJob("a", "x"), NewJob("b", "x")], now_ms=0)
    sampler = Sampler(ledger, now_ms=5, clock_s=lambda: ledger.clock_s)
    sampler.sample()
    for _ in range(SHARE - 2):
        ledger.clock_s += 1.0
        snapshot = sampler.sample()
        assert ledger.counts_made == 1
    assert snapshot.counted_ago_s == SHARE - 2
    ledger.claim(ClaimRequest(claimant="w1", lease_ms=10, max_attempts=3), now_ms=0)
    assert [job.id for job in sampler.sample().running] == ["a"]
    ledger.clock_s += 1.0
    assert sampler.sample().queues[0].counts.running == 1
    assert ledger.counts_made == 2
