"""Tests of the questions about a whole ledger: searches, the counts of each queue, and the latest deaths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ..ledgers.protocol import Ledger
from ..model.job import State
from ..model.query import JobQuery
from ..model.queue_counts import QueueCounts
from .base import (
    Contract,
    claim,
    claim_one,
    drain,
    enqueue,
    ids,
    settlement,
)


class QueueCountsContract(Contract):
    """Searching and summing up, the same on every ledger."""

    # -- searching --

    @pytest.fixture
    def searched(self, ledger: Ledger) -> Ledger:
        """Four jobs: queued (never tried), dead at 1,100, queued again after a failure, running."""
        enqueue(ledger, "plain", now_ms=0, run_at_ms=90_000)
        enqueue(ledger, "buried", "failed", "running", now_ms=1_000)
        buried, failed, _ = claim(ledger, 1_050, limit=3)
        assert ledger.fail(buried.id, buried.version, error="KeyError: 'a_b%'", now_ms=1_100)
        assert ledger.retry(
            failed.id, failed.version, run_at_ms=50_000, error="TimeoutError", max_attempts=3, now_ms=1_200
        )
        return ledger

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            (JobQuery(), ["plain", "buried", "failed", "running"]),
            (JobQuery(error="Error"), ["buried", "failed"]),
            (JobQuery(error="error"), []),
            (JobQuery(error="a_b%"), ["buried"]),
            (JobQuery(error="%"), ["buried"]),
            (JobQuery(error="'a?b"), []),
            (JobQuery(min_attempts=1), ["buried", "failed", "running"]),
            (JobQuery(max_attempts=0), ["plain"]),
            (JobQuery(min_attempts=1, max_attempts=1, error="Timeout"), ["failed"]),
        ],
    )
    def test_a_search_finds_what_the_filter_matches(
        self, searched: Ledger, query: JobQuery, found: list[str]
    ) -> None:
        assert ids(searched.jobs(query).jobs) == found

    def test_a_search_is_narrowed_by_the_other_filters_too(self, searched: Ledger) -> None:
        query = JobQuery(error="Error")
        assert ids(searched.jobs(replace(query, states=("dead",))).jobs) == ["buried"]
        assert ids(searched.jobs(replace(query, queue="other")).jobs) == []
        assert ids(searched.jobs(replace(query, effect="other")).jobs) == []

    @pytest.mark.parametrize(
        ("from_ms", "until_ms", "found"),
        [(1_100, None, ["buried"]), (1_101, None, []), (None, 1_100, ["buried"]), (None, 1_099, [])],
    )
    def test_a_dead_job_is_as_old_as_its_death(
        self, searched: Ledger, from_ms: int | None, until_ms: int | None, found: list[str]
    ) -> None:
        query = JobQuery(states=("dead",), since_ms=from_ms, until_ms=until_ms)
        assert ids(searched.jobs(query).jobs) == found

    def test_any_other_job_is_as_old_as_its_enqueue_where_that_is_kept(self, searched: Ledger) -> None:
        kept = searched.capabilities.keeps_enqueue_time
        live: tuple[State, ...] = ("queued", "running")
        old = searched.jobs(JobQuery(live, until_ms=999)).jobs
        new = searched.jobs(JobQuery(live, since_ms=1_000)).jobs
        assert ids(old) == (["plain"] if kept else [])
        assert ids(new) == (["failed", "running"] if kept else [])

    def test_pages_of_a_search_neither_repeat_nor_leave_out_any(self, ledger: Ledger) -> None:
        names = [f"job-{number}" for number in range(7)]
        enqueue(ledger, *names)
        for job in claim(ledger, 10, limit=7):
            if job.id in ("job-1", "job-3", "job-4", "job-6"):
                assert ledger.fail(job.id, job.version, error="boom", now_ms=20)
        after, pages = None, []
        while True:
            page = ledger.jobs(JobQuery(error="boom", after=after, limit=2))
            pages.append(ids(page.jobs))
            if (after := page.next) is None:
                break
        assert pages == [["job-1", "job-3"], ["job-4", "job-6"]]

    # -- queue_counts --

    def test_an_empty_ledger_has_no_queues(self, ledger: Ledger) -> None:
        assert ledger.queue_counts(since_ms=0, now_ms=0) == []

    def test_each_queue_is_summed_up(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c", "d", "e", queue="mail", now_ms=100)
        enqueue(ledger, "later", queue="mail", now_ms=100, run_at_ms=5_000)
        enqueue(ledger, "x", queue="bills", now_ms=300)
        done, dead, held = claim(ledger, 1_000, limit=3, queues=["mail"])
        assert ledger.settle([settlement(done)], now_ms=1_100)[0].completed
        assert ledger.fail(dead.id, dead.version, error="no", now_ms=1_200)
        assert ledger.hold(held.id, held.version, error="?", now_ms=1_300)
        claim_one(ledger, 1_400, queues=["mail"])
        kept, timed = ledger.capabilities.keeps_claim_details, ledger.capabilities.keeps_enqueue_time
        bills = QueueCounts(
            "bills",
            ready=1,
            oldest_ready_ms=300 if timed else None,
            completed_since=0 if kept else None,
        )
        mail = QueueCounts(
            "mail",
            ready=1,
            delayed=1,
            running=1,
            completed=1,
            dead=1,
            held=1,
            oldest_ready_ms=100 if timed else None,
            completed_since=1 if kept else None,
            died_since=1,
        )
        assert ledger.queue_counts(since_ms=1_100, now_ms=1_400) == [bills, mail]
        after = replace(mail, completed_since=0 if kept else None, died_since=0)
        assert ledger.queue_counts(since_ms=1_201, now_ms=1_400) == [bills, after]

    @pytest.mark.parametrize(("now_ms", "ready"), [(4_999, 0), (5_000, 1), (5_001, 1)])
    def test_a_delayed_job_is_ready_from_its_run_at_on(self, ledger: Ledger, now_ms: int, ready: int) -> None:
        enqueue(ledger, "a", now_ms=100, run_at_ms=5_000)
        (counts,) = ledger.queue_counts(since_ms=0, now_ms=now_ms)
        assert (counts.ready, counts.delayed) == (ready, 1 - ready)
        assert counts.oldest_ready_ms == (5_000 if ready else None)

    def test_the_counts_of_the_queues_add_up_to_those_of_the_ledger(self, searched: Ledger) -> None:
        enqueue(searched, "other", queue="other", now_ms=2_000)
        queues = searched.queue_counts(since_ms=0, now_ms=2_000)
        sums = {state: sum(queue.by_state[state] for queue in queues) for state in searched.counts()}
        assert sums == searched.counts()

    def test_a_queue_whose_jobs_are_all_dead_or_purged(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", queue="mail")
        enqueue(ledger, "b", queue="bills")
        assert ledger.cancel("a", now_ms=5)
        assert ledger.cancel("b", now_ms=5)
        assert ledger.purge("b", now_ms=5)
        (only,) = ledger.queue_counts(since_ms=0, now_ms=5)
        assert (only.queue, only.dead, only.ready, only.oldest_ready_ms) == ("mail", 1, 0, None)

    # -- latest_deaths --

    def test_the_latest_deaths_come_first(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c", "d")
        for id, now_ms in (("c", 10), ("a", 30), ("d", 20)):
            assert ledger.cancel(id, now_ms=now_ms)
        assert ids(ledger.latest_deaths()) == ["a", "d", "c"]
        assert ids(ledger.latest_deaths(limit=2)) == ["a", "d"]
        assert drain(ledger, 40) == ["b"]

    def test_deaths_of_one_instant_come_in_order_of_enqueue(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c")
        for id in ("c", "a"):
            assert ledger.cancel(id, now_ms=10)
        (first, second) = ledger.latest_deaths()
        assert [first.id, second.id] == ["a", "c"]
        assert (first.state, first.died_at_ms, first.last_error) == ("dead", 10, "cancelled")
