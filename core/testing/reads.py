"""Looking: get_job, pages of jobs, counts, what is due next, and the ledger's clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..errors import InvalidInput
from ..ledgers.protocol import Ledger
from ..model.job import (
    STATES,
    ClaimRequest,
    Job,
    Stamps,
    State,
)
from ..model.query import JobQuery
from .base import (
    LEASE_MS,
    NO_CURSORS,
    Contract,
    claim,
    claim_one,
    enqueue,
    ids,
    new,
)
from .model_store import as_kept
from .situations import NOW_MS, SITUATIONS

DUE: dict[str, int | None] = {
    "delayed": 9_000,
    "expired": NOW_MS,
    "retried": 9_000,
    "running": 2_000 + LEASE_MS,
    "started": 2_000 + LEASE_MS,
    "running_expired": NOW_MS,
    "lapsed": NOW_MS,
    "lapsed_started": NOW_MS,
    "completed": None,
    "dead": None,
    "dead_started": None,
    "held": None,
    "purged": None,
}
"""Of each situation: what is due next."""


class ReadContract(Contract):
    """What can be seen, and in which order."""

    # -- get_job --

    def test_an_unknown_id_is_none(self, ledger: Ledger) -> None:
        assert ledger.get_job("nobody") is None

    @pytest.mark.parametrize("id", ["", "A", "a b", "a\n", "a\0", "\ud800", "é", "a" * 65, "%", "5"])
    def test_nothing_is_found_under_what_can_be_no_id(self, ledger: Ledger, id: str) -> None:
        enqueue(ledger, "a")
        assert ledger.get_job(id) is None
        assert ledger.read_inputs(["a", id]).keys() == {"a"}
        assert ledger.receipts(["a", id]) == {}
        assert not ledger.cancel(id)

    @pytest.mark.parametrize("state", ["queued", "running", "completed", "dead", "held"])
    def test_a_job_is_seen_whole_in_every_state(
        self, make_ledger: Callable[[], Ledger], state: State
    ) -> None:
        ledger, stamps = make_ledger(), Stamps(0.5, 7, 2, 90)
        given = new(
            "a", queue="mail", effect="send", priority=3, run_at_ms=50, expires_at_ms=9_000, stamps=stamps
        )
        ledger.enqueue([given], now_ms=10)
        version = claim_one(ledger, 100, claimant="me").version
        want = Job(
            id="a",
            state="running",
            version=1,
            lease_until_ms=600,
            attempts=1,
            queue="mail",
            effect="send",
            priority=3,
            run_at_ms=50,
            expires_at_ms=9_000,
            enqueued_at_ms=10,
            claimant="me",
            claimed_at_ms=100,
            first_claimed_at_ms=100,
            stamps=stamps,
        )
        left = want._replace(state=state, version=2, lease_until_ms=0)
        if state == "queued":
            ledger.retry("a", version, run_at_ms=700, error="why", max_attempts=9, now_ms=200)
            want = left._replace(run_at_ms=700, last_error="why")
        elif state == "completed":
            ledger.complete("a", version, now_ms=200)
            want = left._replace(version=1, completed_at_ms=200)
        elif state == "dead":
            ledger.fail("a", version, error="why", now_ms=200)
            want = left._replace(last_error="why", died_at_ms=200)
        elif state == "held":
            ledger.hold("a", version, error="why", now_ms=200)
            want = left._replace(last_error="why")
        want = as_kept(want, ledger.capabilities)
        assert make_ledger().get_job("a") == want
        assert make_ledger().jobs().jobs == [want]

    # -- pages of jobs --

    def walk(self, ledger: Ledger, limit: int, **filters: Any) -> list[list[str]]:
        """The ids of all pages."""
        pages, after = [], None
        while True:
            page = ledger.jobs(JobQuery(after=after, limit=limit, **filters))
            pages.append(ids(page.jobs))
            after = page.next
            if after is None:
                return pages

    def test_no_jobs_are_one_empty_page(self, ledger: Ledger) -> None:
        assert self.walk(ledger, 5) == [[]]

    @pytest.mark.parametrize(
        ("limit", "pages"),
        [
            (1, ["e", "d", "c", "b", "a"]),
            (2, ["ed", "cb", "a"]),
            (3, ["edc", "ba"]),
            (4, ["edcb", "a"]),
            (5, ["edcba"]),
            (6, ["edcba"]),
        ],
    )
    def test_pages_come_in_order_of_enqueue_and_the_last_has_no_next(
        self, ledger: Ledger, limit: int, pages: list[str]
    ) -> None:
        ledger.enqueue([new(id, priority=n, run_at_ms=n) for n, id in enumerate("edcba")])
        assert self.walk(ledger, limit) == [list(page) for page in pages]

    def test_jobs_of_all_states_stand_in_one_order(self, ledger: Ledger) -> None:
        self.one_of_each(ledger)
        assert self.walk(ledger, 2) == [["held", "dead"], ["completed", "running"], ["queued"]]

    def one_of_each(self, ledger: Ledger) -> None:
        """A job of each state, by its name; the queued one is of another queue and effect."""
        enqueue(ledger, "held", "dead", "completed", "running")
        enqueue(ledger, "queued", queue="mail", effect="send")
        claim(ledger, 0, limit=4)
        ledger.hold("held", 1, error="look", now_ms=1)
        ledger.fail("dead", 1, error="no", now_ms=1)
        ledger.complete("completed", 1, now_ms=1)

    @pytest.mark.parametrize("state", STATES)
    def test_a_state_can_be_asked_for(self, ledger: Ledger, state: State) -> None:
        self.one_of_each(ledger)
        assert ids(ledger.jobs(JobQuery(states=[state])).jobs) == [state]

    def test_several_states_can_be_asked_for(self, ledger: Ledger) -> None:
        self.one_of_each(ledger)
        assert ids(ledger.jobs(JobQuery(states=["queued", "dead"])).jobs) == ["dead", "queued"]
        assert ids(ledger.jobs(JobQuery(states=STATES)).jobs) == [
            "held",
            "dead",
            "completed",
            "running",
            "queued",
        ]
        assert ids(ledger.jobs(JobQuery(states=["dead", "dead"])).jobs) == ["dead"]
        assert ids(ledger.jobs(JobQuery(states=[])).jobs) == []

    def test_a_queue_and_an_effect_can_be_asked_for(self, ledger: Ledger) -> None:
        for n, (queue, effect) in enumerate([("q1", "e1"), ("q2", "e1"), ("q1", "e2"), ("q1", "e1")]):
            enqueue(ledger, f"n{n}", queue=queue, effect=effect)
        ledger.cancel("n0", now_ms=1)
        assert ids(ledger.jobs(JobQuery(queue="q1")).jobs) == ["n0", "n2", "n3"]
        assert ids(ledger.jobs(JobQuery(effect="e1")).jobs) == ["n0", "n1", "n3"]
        assert ids(ledger.jobs(JobQuery(queue="q1", effect="e1", states=["queued"])).jobs) == ["n3"]
        assert ids(ledger.jobs(JobQuery(queue="nothing")).jobs) == []

    def test_pages_of_a_choice_hold_together(self, ledger: Ledger) -> None:
        for n in range(9):
            enqueue(ledger, f"n{n}", queue="odd" if n % 2 else "even")
        for n in (0, 4, 5):
            ledger.cancel(f"n{n}", now_ms=1)
        pages = self.walk(ledger, 2, queue="even")
        assert pages == [["n0", "n2"], ["n4", "n6"], ["n8"]]
        assert self.walk(ledger, 1, queue="even", states=["dead"]) == [["n0"], ["n4"]]

    def test_jobs_that_move_between_two_pages_are_seen_once(self, ledger: Ledger) -> None:
        enqueue(ledger, *"abcdef")
        first = ledger.jobs(JobQuery(limit=3))
        for id in "be":
            ledger.cancel(id, now_ms=1)
        enqueue(ledger, "g")
        second = ledger.jobs(JobQuery(limit=9, after=first.next))
        assert ids(first.jobs) + ids(second.jobs) == list("abcdefg")

    def test_a_job_that_is_purged_between_two_pages_loses_no_other(self, ledger: Ledger) -> None:
        enqueue(ledger, *"abcdef")
        first = ledger.jobs(JobQuery(limit=3))
        ledger.cancel("c", now_ms=1)
        ledger.purge("c", now_ms=1)
        assert ids(ledger.jobs(JobQuery(after=first.next)).jobs) == list("def")

    def test_a_redriven_job_keeps_its_place_and_a_purged_one_begins_anew(self, ledger: Ledger) -> None:
        enqueue(ledger, *"abc")
        for id in "ab":
            ledger.cancel(id, now_ms=1)
        ledger.redrive("a", now_ms=2)
        ledger.purge("b", now_ms=2)
        enqueue(ledger, "b", now_ms=3)
        assert ids(ledger.jobs().jobs) == ["a", "c", "b"]

    @pytest.mark.parametrize("cursor", NO_CURSORS)
    def test_a_cursor_that_no_page_gave_is_refused(self, ledger: Ledger, cursor: str) -> None:
        enqueue(ledger, "a")
        with pytest.raises(InvalidInput):
            ledger.jobs(JobQuery(after=cursor))

    # -- counts --

    def test_all_five_states_are_counted_always(self, ledger: Ledger) -> None:
        assert ledger.counts() == dict.fromkeys(STATES, 0)
        self.one_of_each(ledger)
        assert ledger.counts() == dict.fromkeys(STATES, 1)

    def test_a_queue_can_be_counted(self, ledger: Ledger) -> None:
        self.one_of_each(ledger)
        assert ledger.counts(queue="mail") == dict.fromkeys(STATES, 0) | {"queued": 1}
        assert ledger.counts(queue="default") == dict.fromkeys(STATES, 1) | {"queued": 0}
        assert ledger.counts(queue="nothing") == dict.fromkeys(STATES, 0)

    # -- what is due next --

    @pytest.mark.parametrize("situation", DUE)
    def test_what_is_due_next_is_reported_even_when_it_has_passed(
        self, ledger: Ledger, situation: str
    ) -> None:
        SITUATIONS[situation](ledger)
        due_ms = ledger.next_due_ms()
        if situation == "expired":  # it is queued, and thus ready whatever the clock says
            assert due_ms is not None
            assert due_ms <= NOW_MS
        else:
            assert due_ms == DUE[situation]

    def test_a_ready_job_is_due_whatever_the_clock_says(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", now_ms=5_000)
        due_ms = ledger.next_due_ms()
        assert due_ms is not None
        assert due_ms <= 5_000

    def test_nothing_is_due_in_an_empty_ledger(self, ledger: Ledger) -> None:
        assert ledger.next_due_ms() is None

    def test_the_first_of_all_is_due(self, ledger: Ledger) -> None:
        ledger.enqueue([new("late", run_at_ms=9_000), new("soon", run_at_ms=700, expires_at_ms=9_000)])
        assert ledger.next_due_ms() == 700
        enqueue(ledger, "sooner", run_at_ms=8_000, expires_at_ms=600)
        assert ledger.next_due_ms() == 600
        enqueue(ledger, "claimed")
        claim_one(ledger, 0, lease_ms=500)
        assert ledger.next_due_ms() == 500
        ledger.heartbeat("claimed", 1, extend_ms=9_000, now_ms=1)
        assert ledger.next_due_ms() == 600

    def test_what_is_due_is_asked_for_queues_and_effects(self, ledger: Ledger) -> None:
        for n, (queue, effect) in enumerate([("q1", "e1"), ("q2", "e1"), ("q2", "e2")]):
            enqueue(ledger, f"n{n}", queue=queue, effect=effect, run_at_ms=100 * (n + 1))
        assert ledger.next_due_ms(queues=["q2"]) == 200
        assert ledger.next_due_ms(effects=["e2"]) == 300
        assert ledger.next_due_ms(queues=["q1", "q2"], effects=["e1"]) == 100
        assert ledger.next_due_ms(queues=["q1"], effects=["e2"]) is None
        assert ledger.next_due_ms(queues=["nothing"]) is None

    # -- the clock --

    def test_without_an_instant_the_ledgers_own_clock_is_read(self, ledger: Ledger) -> None:
        before_ms = ledger.now_ms()
        ledger.enqueue([new("a", effect="send")])
        (job,) = ledger.claim(ClaimRequest(claimant="me", lease_ms=60_000, max_attempts=1))
        after_ms = ledger.now_ms()
        assert job.first_claimed_at_ms is not None
        assert before_ms <= job.first_claimed_at_ms <= after_ms
        assert job.lease_until_ms == job.first_claimed_at_ms + 60_000
        assert ledger.complete("a", job.version)
