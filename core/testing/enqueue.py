"""Enqueue: all or nothing, an id permanently binds its text, and texts come back byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..errors import IdentityConflict, InvalidInput, LimitExceeded
from ..ledgers.protocol import Ledger
from ..model.checks import MAX_SPAN_MS
from ..model.inputs import Input, NewJob, text_sha256
from ..model.job import Job, Stamps
from ..model.records import Enqueued, Row
from .base import (
    Contract,
    claim_one,
    enqueue,
    ids,
    job_of,
    new,
)
from .model_store import as_kept

BAD_RECORDS = {
    "an id with a trailing newline": new("bad\n"),
    "an id of 65 characters": new("b" * 65),
    "an empty id": new(""),
    "a lone surrogate": new("bad", "\ud800"),
    "a text of 1,000,001 bytes": new("bad", "é" * 500_000 + "x"),
    "a queue in upper case": new("bad", queue="Mail"),
    "an effect with a blank": new("bad", effect="send mail"),
    "a priority beyond 32 bits": new("bad", priority=2**31),
    "a priority that is a boolean": new("bad", priority=True),
    "a negative run_at": new("bad", run_at_ms=-1),
    "a negative expiry": new("bad", expires_at_ms=-1),
    "a lease of no length": new("bad", stamps=Stamps(visibility_timeout_s=0)),
    "no attempts": new("bad", stamps=Stamps(max_attempts=0)),
    "a backoff that is no number": new("bad", stamps=Stamps(backoff_base_s=float("nan"))),
    "a negative retention": new("bad", stamps=Stamps(dead_letter_retention_s=-1)),
}
TEXTS = {
    "empty": "",
    "nul": "a\0b\0",
    "astral": "𝔘𝔫𝔦 👩‍👩‍👧 \U0010ffff",
    "not normalised": "e\u0301 é \u212b",
    "line ends": "a\r\nb\rc\n\u2028\u2029\x85",
    "control characters": "".join(map(chr, range(32))) + "\x7f\ufeff\ufffe",
    "escapes": r"\u0000 \n ' \" -- ; %s %% {} $1 :name ?",
    "1,000,000 bytes": "é" * 500_000,
    "1,000,000 characters": "x" * 1_000_000,
    "1,000,000 bytes of nul": "\0" * 1_000_000,
}


class EnqueueContract(Contract):
    """What an enqueue stores, and when it stores nothing."""

    def test_a_job_is_queued_as_it_was_given(self, ledger: Ledger) -> None:
        stamps = Stamps(1.5, 7, 0.25, 0)
        given = NewJob("a", "text", "mail", "send", -5, 7_000, 8_000, stamps)
        assert ledger.enqueue([given], now_ms=1_000) == [Enqueued("a", created=True)]
        want = Job(
            id="a",
            state="queued",
            version=0,
            lease_until_ms=0,
            attempts=0,
            queue="mail",
            effect="send",
            priority=-5,
            run_at_ms=7_000,
            expires_at_ms=8_000,
            enqueued_at_ms=1_000,
            stamps=stamps,
        )
        assert ledger.get_job("a") == as_kept(want, ledger.capabilities)

    def test_a_job_without_options_has_the_defaults(self, ledger: Ledger) -> None:
        ledger.enqueue([NewJob("a", "text")], now_ms=1_000)
        assert ledger.get_job("a") == as_kept(Job(id="a", enqueued_at_ms=1_000), ledger.capabilities)

    def test_answers_come_in_the_order_of_the_records(self, ledger: Ledger) -> None:
        enqueue(ledger, "m")
        answers = ledger.enqueue([new("z"), new("m"), new("a")])
        assert answers == [
            Enqueued("z", created=True),
            Enqueued("m", created=False),
            Enqueued("a", created=True),
        ]
        assert ids(ledger.jobs().jobs) == ["m", "z", "a"]

    def test_an_iterator_of_jobs_is_taken_too(self, ledger: Ledger) -> None:
        ledger.enqueue(new(id) for id in "abc")
        assert ids(ledger.jobs().jobs) == ["a", "b", "c"]

    def test_ten_thousand_records_are_one_request(self, ledger: Ledger) -> None:
        answers = ledger.enqueue([NewJob(f"job-{n}", "x") for n in range(10_000)])
        assert len(answers) == 10_000
        assert all(answer.created for answer in answers)
        assert ledger.counts()["queued"] == 10_000

    def test_ten_thousand_and_one_are_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LimitExceeded, match="10,000"):
            ledger.enqueue([NewJob(f"job-{n}", "x") for n in range(10_001)])
        assert ledger.counts()["queued"] == 0

    def test_a_request_without_records_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(InvalidInput):
            ledger.enqueue([])

    def test_an_id_twice_in_one_request_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(InvalidInput, match="'a'"):
            ledger.enqueue([new("a"), new("b"), new("a")])
        assert ledger.jobs().jobs == []

    @pytest.mark.parametrize("bad", BAD_RECORDS.values(), ids=BAD_RECORDS)
    def test_one_bad_record_stores_nothing(self, ledger: Ledger, bad: NewJob) -> None:
        with pytest.raises(InvalidInput, match="record 2"):
            ledger.enqueue([new("good"), bad, new("better")])
        assert ledger.jobs().jobs == []
        assert ledger.read_inputs(["good", "bad", "better"]) == {}

    def test_the_longest_names_are_stored(self, ledger: Ledger) -> None:
        longest = "z" + "-9" * 31 + "a"
        enqueue(ledger, longest, queue=longest, effect=longest)
        assert claim_one(ledger, 0, queues=[longest], effects=[longest]).id == longest

    def test_the_largest_figures_are_stored(self, ledger: Ledger) -> None:
        most, longest_s = 2**53 - 1, MAX_SPAN_MS // 1_000
        stamps = Stamps(longest_s, most, longest_s, longest_s)
        for priority in (-(2**31), 2**31 - 1):
            id = "low" if priority < 0 else "high"
            enqueue(ledger, id, priority=priority, run_at_ms=most, expires_at_ms=most, stamps=stamps)
            job = job_of(ledger, id)
            assert (job.priority, job.run_at_ms, job.expires_at_ms) == (priority, most, most)
            assert job.stamps == stamps

    def test_stamps_are_rounded_up_to_whole_milliseconds(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", stamps=Stamps(0.0001, None, 0.0701, 0.07))
        assert job_of(ledger).stamps == Stamps(0.001, None, 0.071, 0.07)

    # -- a known id --

    def bring_to(self, ledger: Ledger, state: str) -> None:
        """Bring the job "a" into the state."""
        enqueue(ledger, "a", effect="send")
        if state != "queued":
            version = claim_one(ledger, 0).version
            if state == "completed":
                ledger.complete("a", version, now_ms=1)
            elif state == "dead":
                ledger.fail("a", version, error="no", now_ms=1)
            elif state == "held":
                ledger.hold("a", version, error="look", now_ms=1)
        assert job_of(ledger).state == state

    @pytest.mark.parametrize("state", ["queued", "running", "completed", "dead", "held"])
    def test_the_same_again_changes_nothing_and_is_success(self, ledger: Ledger, state: str) -> None:
        self.bring_to(ledger, state)
        before = job_of(ledger)
        other_options = new("a", effect="send", queue="other", priority=9, run_at_ms=7, expires_at_ms=8)
        assert ledger.enqueue([other_options], now_ms=5) == [Enqueued("a", created=False)]
        assert job_of(ledger) == before
        assert sum(ledger.counts().values()) == 1

    @pytest.mark.parametrize("state", ["queued", "running", "completed", "dead", "held"])
    def test_another_text_is_a_conflict(self, ledger: Ledger, state: str) -> None:
        self.bring_to(ledger, state)
        before = job_of(ledger)
        with pytest.raises(IdentityConflict, match="'a'"):
            ledger.enqueue([new("b"), new("a", "another text", effect="send"), new("c")])
        assert job_of(ledger) == before
        assert sum(ledger.counts().values()) == 1
        assert ledger.read_inputs(["a", "b", "c"]) == {"a": Input("a", "text of a")}

    @pytest.mark.parametrize("state", ["queued", "running", "completed", "dead", "held"])
    def test_another_effect_is_a_conflict(self, ledger: Ledger, state: str) -> None:
        self.bring_to(ledger, state)
        before = job_of(ledger)
        with pytest.raises(IdentityConflict, match="'a'"):
            ledger.enqueue([new("b"), new("a", effect="print")])
        assert job_of(ledger) == before
        assert sum(ledger.counts().values()) == 1

    def test_texts_that_differ_in_normal_form_only_are_different(self, ledger: Ledger) -> None:
        ledger.enqueue([new("a", "é")])
        with pytest.raises(IdentityConflict):
            ledger.enqueue([new("a", "e\u0301")])

    def test_a_purged_id_is_made_anew_by_the_same_text(self, ledger: Ledger) -> None:
        self.bring_to(ledger, "dead")
        enqueue(ledger, "b", now_ms=2)
        dead = job_of(ledger)
        assert ledger.purge("a", now_ms=3)
        assert ledger.enqueue([new("a", effect="send")], now_ms=4) == [Enqueued("a", created=True)]
        want = Job(id="a", effect="send", version=dead.version + 1, enqueued_at_ms=4)
        assert ledger.get_job("a") == as_kept(want, ledger.capabilities)
        assert ids(ledger.jobs().jobs) == ["b", "a"]

    def test_a_purged_id_stays_bound_to_its_text(self, ledger: Ledger) -> None:
        self.bring_to(ledger, "dead")
        assert ledger.purge("a", now_ms=2)
        with pytest.raises(IdentityConflict, match="'a'"):
            ledger.enqueue([new("a", "another text", effect="send")])
        assert ledger.get_job("a") is None

    @pytest.mark.parametrize("fence", ["the old fence", "the version it was purged at"])
    def test_an_old_fence_never_fits_the_new_job(self, ledger: Ledger, fence: str) -> None:
        enqueue(ledger, "a")
        old = claim_one(ledger, 0)
        assert ledger.cancel("a", now_ms=1)
        stale = old.version if fence == "the old fence" else job_of(ledger).version
        assert ledger.purge("a", now_ms=2)
        enqueue(ledger, "a", now_ms=3)
        fresh = claim_one(ledger, 4)
        assert fresh.version > stale
        assert not ledger.complete("a", stale, now_ms=5)
        assert not ledger.heartbeat("a", stale, now_ms=5)
        assert not ledger.fail("a", stale, error="stale", now_ms=5)
        assert ledger.complete("a", fresh.version, now_ms=5)

    def test_fences_go_on_over_two_purges(self, ledger: Ledger) -> None:
        versions = []
        for round in range(3):
            enqueue(ledger, "a", now_ms=round)
            versions.append(claim_one(ledger, round).version)
            assert ledger.cancel("a", now_ms=round)
            assert ledger.purge("a", now_ms=round)
        assert versions == [1, 4, 7]

    def test_an_input_without_a_job_is_adopted_by_the_same_text(self, ledger: Ledger) -> None:
        ledger.import_rows([Row("a", None, None, Input("a", "text of a"), None)])
        assert ledger.get_job("a") is None
        assert ledger.enqueue([new("a")], now_ms=5) == [Enqueued("a", created=True)]
        assert job_of(ledger).version == 0

    def test_an_input_without_a_job_binds_its_id(self, ledger: Ledger) -> None:
        ledger.import_rows([Row("a", None, None, Input("a", "text of a"), None)])
        with pytest.raises(IdentityConflict, match="'a'"):
            ledger.enqueue([new("b"), new("a", "another text")])
        assert ledger.jobs().jobs == []

    # -- texts --

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_a_text_comes_back_byte_for_byte(self, make_ledger: Callable[[], Ledger], text: str) -> None:
        make_ledger().enqueue([new("a", text)])
        (found,) = make_ledger().read_inputs(["a"]).values()
        assert found.text.encode() == text.encode()
        assert found.sha256 == text_sha256(text)
        assert make_ledger().enqueue([new("a", text)]) == [Enqueued("a", created=False)]

    def test_inputs_are_read_as_many_as_are_there(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", "c")
        assert ledger.read_inputs(["c", "nobody", "a"]) == {
            "a": Input("a", "text of a"),
            "c": Input("c", "text of c"),
        }
        assert ledger.read_inputs([]) == {}
