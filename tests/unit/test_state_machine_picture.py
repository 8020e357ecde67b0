"""The picture in docs/explanation/state-machine.md has exactly the moves that ``job.py`` makes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from fencepost.core.model import job as moves
from fencepost.core.model.job import ClaimRequest, Job, Stamps

PICTURE = Path(__file__).parents[2] / "docs" / "explanation" / "state-machine.md"
NOW, LIMIT = 100, 3
REQUEST = ClaimRequest(claimant="w", lease_ms=10, max_attempts=LIMIT)


def drawn() -> set[tuple[str, str, str]]:
    arrows = re.findall(r"^ +(\S+) --> (\S+) : (\w+)$", PICTURE.read_text("utf-8"), re.MULTILINE)
    return {(before, after, move) for before, after, move in arrows if "[*]" not in (before, after)}


def situations() -> Iterator[Job]:
    """Every state, with every circumstance that a move looks at."""
    for state, lease, attempts, expiry, started in itertools.product(
        moves.STATES, (NOW, NOW + 1), (0, 1, LIMIT), (None, NOW, NOW + 1), (None, 1)
    ):
        running = state == "running"
        yield Job(
            "a",
            state,
            version=7,
            lease_until_ms=lease if running else 0,
            attempts=attempts,
            expires_at_ms=expiry,
            started_at_ms=started,
            died_at_ms=1 if state == "dead" else None,
            stamps=Stamps(dead_letter_retention_s=0),
        )


def made(job: Job) -> Iterator[tuple[str, Job | None]]:
    """Every move that a job makes, by its name in the picture."""
    yield "claim", moves.claim(job, REQUEST, now_ms=NOW)
    yield "begin", moves.begin(job, 7, now_ms=NOW)
    yield "heartbeat", moves.heartbeat(job, 7, now_ms=NOW, extend_ms=5)
    yield "complete", moves.complete(job, 7, now_ms=NOW)
    yield "retry", moves.retry(job, 7, now_ms=NOW, run_at_ms=NOW, error="e", max_attempts=LIMIT)
    yield "fail", moves.fail(job, 7, now_ms=NOW, error="e")
    yield "release", moves.release(job._replace(attempts=max(1, job.attempts)), 7, now_ms=NOW)
    yield "hold", moves.hold(job, 7, now_ms=NOW, error="e")
    yield "cancel", moves.cancel(job, now_ms=NOW)
    yield "reschedule", moves.reschedule(job, run_at_ms=NOW, priority=1)
    for has_receipt in (False, True):
        yield "redrive", moves.redrive(job, now_ms=NOW, has_receipt=has_receipt)
    for decision in ("applied", "retry", "fail"):
        yield "resolve", moves.resolve(job, now_ms=NOW, decision=decision)
    names = {moves.EXPIRED: "expire", moves.ATTEMPT_LOST: "lost", moves.EXHAUSTED: "exhausted"}
    for has_receipt in (False, True):
        reaped = moves.reap(job, REQUEST, now_ms=NOW, has_receipt=has_receipt)
        yield names.get((reaped and reaped.last_error) or "", "reclaim"), reaped


def test_the_picture_shows_every_move_and_no_other() -> None:
    edges = {
        (job.state, after.state, move)
        for job in situations()
        for move, after in made(job)
        if after is not None
    }
    assert edges == drawn()


def test_only_dead_jobs_are_purged() -> None:
    assert {job.state for job in situations() if moves.purgeable(job, NOW)} == {"dead"}
    assert "dead --> [*] : purge" in PICTURE.read_text("utf-8")
