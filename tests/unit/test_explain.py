"""Why a job has not run: each answer names the reason, what happens next, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.core.model.explain import Surroundings, brief, explain
from fencepost.core.model.job import STATES, Job, Stamps

NOW_MS = 1_000_000
AROUND = Surroundings(NOW_MS)
QUEUED = Job("a", enqueued_at_ms=NOW_MS - 180_000)
RUNNING = QUEUED._replace(state="running", version=1, attempts=1, claimant="w1", claimed_at_ms=NOW_MS - 3_000,
    lease_until_ms=NOW_MS + 12_000, stamps=Stamps(max_attempts=3),
)  # fmt: skip
LAPSED = RUNNING._replace(lease_until_ms=NOW_MS - 60_000)


def told(job: Job, **around: object) -> str:
    """Everything that is said about the job, on one line."""
    answer = explain(job, replace(AROUND, **around))  # type: ignore[arg-type]
    advice = " | ".join(f"{line.what}: {line.command}" for line in answer.advice)
    return f"{answer.why} || {answer.next} || {advice}"


@pytest.mark.parametrize(
    ("job", "around", "words"),
    [
        (
            QUEUED,
            {},
            "ready for 3 min / no worker has claimed it / serves the queue 'default' / has the effect 'count' / "
            "perhaps there is no such worker / fencepost worker --follow --queue default --effect count",
        ),
        (QUEUED, {"running_beside": 4}, "4 other such jobs are running / waits for its turn"),
        (QUEUED, {"running_beside": 1}, "one other such job is running"),
        (QUEUED, {"paused": True}, "its queue 'default' is paused / fencepost queues resume default"),
        (
            QUEUED,
            {"paused": True, "pause_said": "by me 2 h ago: provider down"},
            "is paused (by me 2 h ago: provider down)",
        ),
        (QUEUED, {"installed": False}, "has the effect 'count', which is not installed here"),
        (QUEUED, {"installed": False}, "the effect 'count' is not installed here / fencepost plugins"),
        (QUEUED, {"has_receipt": True}, "its receipt is there already / its effect is not repeated"),
        (QUEUED._replace(expires_at_ms=NOW_MS + 5_000), {}, "expires in 5 s"),
        (QUEUED._replace(expires_at_ms=NOW_MS), {}, "it expired now / buries it / fencepost sweep"),
        (QUEUED._replace(run_at_ms=NOW_MS + 90_000), {}, "not due for another 1 min 30 s / in 1 min 30 s"),
        (
            QUEUED._replace(run_at_ms=NOW_MS + 9_000, attempts=2, last_error="OSError: gone\n  at line 1"),
            {},
            "attempt 2 failed: OSError: gone; it is not due for another 9 s / attempt 3 of 3 by default",
        ),
        (
            QUEUED._replace(run_at_ms=NOW_MS + 9_000),
            {"paused": True},
            "not due / is paused / nothing until the queue is resumed",
        ),
        (QUEUED._replace(run_at_ms=NOW_MS), {}, "it is ready, / no worker has claimed it"),
        (
            QUEUED._replace(attempts=1, last_error="OSError: gone"),
            {},
            "no worker has claimed it again: OSError: gone",
        ),
        (
            QUEUED._replace(attempts=3, stamps=Stamps(max_attempts=3)),
            {},
            "attempts are used up (attempt 3 of 3) / the next claim that serves it buries it / dead redrive a",
        ),
        (QUEUED._replace(attempts=3), {}, "used up / by a worker with that limit / higher --max-attempts"),
        (
            RUNNING,
            {},
            "claimed by w1 3 s ago (attempt 1 of 3) / being worked on / "
            "lease ends in 12 s unless the worker renews it, then any worker may take it (attempt 2 of 3)",
        ),
        (RUNNING._replace(attempts=3), {}, "lease ends in 12 s / it is buried, because that was its last"),
        (RUNNING._replace(started_at_ms=5), {}, "then it is held, because nobody can tell"),
        (
            RUNNING._replace(started_at_ms=5),
            {"has_receipt": True},
            "then the next claim completes it by the receipt that is there",
        ),
        (RUNNING, {"paused": True}, "waits until the queue 'default' is resumed"),
        (RUNNING, {"has_receipt": True}, "completes it by the receipt that is there"),
        (RUNNING._replace(expires_at_ms=NOW_MS - 1), {}, "claimed by w1 / but it expired 1 ms ago"),
        (
            LAPSED,
            {},
            "its lease ended 1 min ago: the worker died, hangs / with the next claim / any worker may take it / "
            "start a worker",
        ),
        (LAPSED._replace(lease_until_ms=NOW_MS), {}, "its lease ended now"),
        (
            Job("a", "completed", 1, 0, 1, completed_at_ms=NOW_MS - 1_000),
            {"has_receipt": True},
            "completed 1 s ago / the receipt stands",
        ),
        (Job("a", "completed", 1, 0, 1), {}, "its receipt is missing / fencepost doctor"),
        (
            Job("a", "dead", 2, 0, 3, last_error="boom", died_at_ms=NOW_MS - 7_200_000),
            {},
            "died 2 h ago after 3 attempts: boom / it stays until somebody / dead redrive a / dead purge a",
        ),
        (
            Job("a", "dead", 2, 0, 1, died_at_ms=NOW_MS, stamps=Stamps(dead_letter_retention_s=60)),
            {},
            "a sweep purges it in 1 min",
        ),
        (
            Job("a", "dead", 2, 0, 1, died_at_ms=NOW_MS, stamps=Stamps(dead_letter_retention_s=0)),
            {},
            "the next sweep purges it: its retention ended now",
        ),
        (Job("a", "dead", 2, 0, 1, started_at_ms=1), {}, "it will be held: it had started"),
        (Job("a", "dead", 2, 0, 1, started_at_ms=1), {"has_receipt": True}, "its effect is not repeated"),
        (
            Job("a", "held", 2, 0, 1, last_error="attempt lost after its start"),
            {},
            "held until a person decides, after 1 attempt: attempt lost / --applied / --retry / --fail",
        ),
        (Job("a", "held", 2, 0, 1), {"has_receipt": True}, "jobs resolve a --adopt-receipt"),
        (
            Job("a", "held", 2, 0, 1, last_error="ReceiptConflict: it says otherwise"),
            {"has_receipt": True},
            "contradicts itself or cannot be read: ReceiptConflict: it says otherwise / mends what is stored / "
            "compare its receipt with its input / doctor --verify / never adopt / --retry / --fail",
        ),
        (
            Job("a", "held", 2, 0, 1, last_error="LedgerCorrupt: effects/a.json"),
            {},
            "cannot be read: LedgerCorrupt / restore from a copy",
        ),
        (QUEUED, {"has_input": False}, "its input is missing / fencepost doctor"),
        (QUEUED, {"copying_from": "/x/old.db"}, "the copy of /x/old.db / until it has / copy --from /x/old.db"),
        (QUEUED, {"sealed_for": "/x/new.db"}, "sealed / copied to /x/new.db / jobs show a --store /x/new.db"),
    ],
)  # fmt: skip
def test_the_answer_names_the_reason_what_comes_next_and_what_to_do(
    job: Job, around: dict[str, object], words: str
) -> None:
    said = told(job, **around)
    place = 0
    for part in words.split(" / "):
        found = said.find(part, place)
        assert found >= 0, f"{part!r} should follow in: {said}"
        place = found + len(part)


def test_the_instant_of_what_comes_next_is_given_for_programs() -> None:
    assert explain(RUNNING, AROUND).next_at_ms == NOW_MS + 12_000
    assert explain(QUEUED._replace(run_at_ms=NOW_MS + 7), AROUND).next_at_ms == NOW_MS + 7
    assert explain(QUEUED, AROUND).next_at_ms is None


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_an_answer_on_a_ledger_that_keeps_little(state: str) -> None:
    job = Job("a", state, 1, 5 if state == "running" else 0, 1)  # type: ignore[arg-type]
    assert explain(job, AROUND).why
    assert brief(job, NOW_MS)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (QUEUED, "ready for 3 min"),
        (QUEUED._replace(run_at_ms=NOW_MS + 5_000), "due in 5 s"),
        (QUEUED._replace(attempts=1, last_error="OSError: no\nlines"), "ready for 3 min; OSError: no"),
        (QUEUED._replace(expires_at_ms=NOW_MS - 5_000), "expired 5 s ago"),
        (RUNNING, "lease ends in 12 s"),
        (LAPSED, "lease ended 1 min ago"),
        (Job("a", "dead", last_error="boom", died_at_ms=NOW_MS - 1_000), "1 s ago: boom"),
        (Job("a", "held", last_error="unknown"), "unknown"),
    ],
)
def test_one_line_of_a_table_says_the_same_in_a_few_words(job: Job, words: str) -> None:
    assert brief(job, NOW_MS) == words


def test_a_paused_queue_is_said_in_the_table_too() -> None:
    assert brief(QUEUED, NOW_MS, paused=True) == "queue paused"


@pytest.mark.parametrize("error", ["ReceiptConflict: it says otherwise", "LedgerCorrupt: effects/a.json"])
def test_nobody_is_advised_to_adopt_a_receipt_that_is_known_to_be_false(error: str) -> None:
    said = told(Job("a", "held", 2, 0, 1, last_error=error), has_receipt=True)
    assert "--adopt-receipt" not in said
    assert "find out at the receiver" not in said
