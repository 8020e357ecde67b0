"""What the doctor finds in the entries of a ledger, and what it leaves alone: pure."""

from __future__ import annotations

import pytest
from fencepost.core import Input, Receipt
from fencepost.core.doctor.checks import (
    AHEAD_MS,
    EXAMPLES,
    LATE_MS,
    LONGEST_LEASE_MS,
    WAITING_MS,
    Examination,
)
from fencepost.core.ledgers.inspection import Content, Entry, Finding
from fencepost.core.model.job import Job, Stamps

NOW_MS = 1_796_000_000_000
READY = Job("a", enqueued_at_ms=NOW_MS - 1_000)
RUNNING = READY._replace(state="running", version=1, attempts=1, lease_until_ms=NOW_MS + 1_000)
DONE = READY._replace(state="completed", version=1, attempts=1, completed_at_ms=NOW_MS - 500)
DEAD = READY._replace(state="dead", version=1, died_at_ms=NOW_MS - LATE_MS - 60_000)


def examined(*entries: Entry, paused: tuple[str, ...] = ()) -> list[Finding]:
    examination = Examination(now_ms=NOW_MS, paused=list(paused), count=lambda text: {})
    for entry in entries:
        examination.look(entry)
    return list(examination.findings())


def of(job: Job, *, has_input: bool = True, has_receipt: bool | None = None) -> Entry:
    return Entry(
        job.id, job, False, has_input, job.state == "completed" if has_receipt is None else has_receipt
    )


@pytest.mark.parametrize(
    "entry",
    [
        of(READY),
        of(RUNNING),
        of(RUNNING, has_receipt=True),
        of(DONE),
        of(DEAD),
        of(READY._replace(run_at_ms=NOW_MS + 10**9, expires_at_ms=NOW_MS + 10**10)),
        of(READY._replace(expires_at_ms=NOW_MS - LATE_MS + 1)),
        of(RUNNING._replace(lease_until_ms=NOW_MS - LATE_MS + 1)),
        of(READY._replace(enqueued_at_ms=NOW_MS - WAITING_MS + 1)),
        of(DEAD._replace(stamps=Stamps(dead_letter_retention_s=10**6))),
        of(READY._replace(enqueued_at_ms=NOW_MS + AHEAD_MS)),
        of(RUNNING._replace(lease_until_ms=NOW_MS + LONGEST_LEASE_MS)),
        of(RUNNING._replace(lease_until_ms=NOW_MS + 10**9, stamps=Stamps(visibility_timeout_s=10**7))),
        Entry("a", None, True, True, True),
        Entry("a", None, True, True, False),
    ],
)
def test_what_is_sound_is_left_alone(entry: Entry) -> None:
    assert examined(entry) == []


@pytest.mark.parametrize(
    ("entry", "check"),
    [
        (of(READY, has_input=False), "job-without-input"),
        (of(DONE, has_receipt=False), "completed-without-receipt"),
        (Entry("a", None, False, True, False), "input-without-job"),
        (Entry("a", None, False, True, True), "receipt-without-job"),
        (Entry("a", None, False, False, True), "receipt-without-job"),
        (of(READY._replace(state="held", version=2)), "held"),
        (of(READY._replace(expires_at_ms=NOW_MS - LATE_MS)), "expired-unswept"),
        (of(RUNNING._replace(expires_at_ms=NOW_MS - LATE_MS)), "expired-unswept"),
        (of(DEAD._replace(stamps=Stamps(dead_letter_retention_s=1))), "retention-ended"),
        (of(RUNNING._replace(lease_until_ms=NOW_MS - LATE_MS)), "stuck-running"),
        (of(READY._replace(enqueued_at_ms=NOW_MS - WAITING_MS)), "stuck-queued"),
        (of(READY._replace(run_at_ms=NOW_MS - WAITING_MS)), "stuck-queued"),
        (of(READY._replace(enqueued_at_ms=NOW_MS + AHEAD_MS + 1)), "clock-ahead"),
        (of(RUNNING._replace(claimed_at_ms=NOW_MS + AHEAD_MS + 1)), "clock-ahead"),
        (of(DEAD._replace(died_at_ms=NOW_MS + AHEAD_MS + 1)), "clock-ahead"),
        (of(RUNNING._replace(lease_until_ms=NOW_MS + LONGEST_LEASE_MS + 1)), "long-lease"),
    ],
)
def test_what_is_wrong_is_found_with_its_remedy(entry: Entry, check: str) -> None:
    (finding,) = examined(entry)
    assert (finding.check, finding.ids, finding.count) == (check, ("a",), 1)
    assert finding.problem
    assert finding.remedy


def test_a_queue_is_stuck_after_ten_minutes_and_the_finding_names_that_threshold() -> None:
    ten_minutes_ms = 10 * 60_000
    assert examined(of(READY._replace(enqueued_at_ms=NOW_MS - ten_minutes_ms + 1))) == []
    (finding,) = examined(of(READY._replace(enqueued_at_ms=NOW_MS - ten_minutes_ms)))
    assert (finding.check, "ready for more than 10 min, the threshold" in finding.problem) == (
        "stuck-queued",
        True,
    )


def test_a_queue_is_not_stuck_while_a_worker_is_on_one_of_its_jobs() -> None:
    waiting = of(READY._replace(enqueued_at_ms=NOW_MS - WAITING_MS))
    assert examined(waiting, of(RUNNING._replace(id="b"))) == []
    assert examined(of(RUNNING._replace(id="b")), waiting) == []
    (finding,) = examined(waiting, of(RUNNING._replace(id="b", effect="other")))
    assert "--queue default --effect count" in finding.remedy


def test_a_paused_queue_is_said_to_be_paused_and_not_stuck() -> None:
    (finding,) = examined(of(READY._replace(enqueued_at_ms=0)), paused=("default",))
    assert (finding.check, finding.remedy.split(",")[0]) == ("paused", "fencepost queues resume default")


def test_findings_of_one_kind_are_counted_and_only_the_first_are_named() -> None:
    (finding,) = examined(*(of(READY._replace(id=f"j{n}"), has_input=False) for n in range(EXAMPLES + 4)))
    assert finding.count == EXAMPLES + 4
    assert finding.ids == tuple(f"j{n}" for n in range(EXAMPLES))


def test_logical_and_real_clocks_in_one_ledger_are_found() -> None:
    logical = of(DONE._replace(id="b", enqueued_at_ms=100, completed_at_ms=105))
    assert examined(logical) == []
    for order in ((logical, of(DONE)), (of(DONE), logical)):
        (finding,) = examined(*order)
        assert (finding.check, finding.ids) == ("mixed-clocks", ("b",))


def test_jobs_of_another_effect_need_a_worker_that_has_its_plugin() -> None:
    (finding,) = examined(of(READY._replace(effect="letter", enqueued_at_ms=NOW_MS - WAITING_MS)))
    assert finding.check == "stuck-queued"
    assert "--effect letter (where the plugin with that effect is installed)" in finding.remedy


@pytest.mark.parametrize(
    ("content", "check"),
    [
        (Content("a", Input("a", "x"), Receipt("a", Input("a", "x").sha256, {"words": 1})), None),
        (
            Content("a", Input("a", "x"), Receipt("a", Input("a", "x").sha256, {"words": 2})),
            "outcome-differs",
        ),
        (
            Content("a", Input("a", "x"), Receipt("a", Input("a", "x").sha256, {"words": 1.0})),
            "outcome-differs",
        ),
        (Content("a", Input("a", "x"), Receipt("a", Input("a", "x").sha256, {"words": 2}, "mail")), None),
        (Content("a", Input("a", "x"), None), None),
        (Content("a", Input("a", "x"), Receipt("a", Input("a", "y").sha256, {})), "receipt-differs"),
        (Content("a", Input("a", "x"), Receipt("b", Input("a", "x").sha256, {})), "receipt-differs"),
        (Content("a", None, None, fault="not JSON"), "unreadable"),
    ],
)
def test_a_receipt_must_be_of_its_input(content: Content, check: str | None) -> None:
    examination = Examination(now_ms=NOW_MS, paused=[], count=lambda text: {"words": len(text)})
    examination.compare(content)
    assert [finding.check for finding in examination.findings()] == ([] if check is None else [check])
