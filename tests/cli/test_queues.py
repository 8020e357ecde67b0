"""``queues``: how each stands, over every kind of ledger; pause and resume where there are pauses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.inprocess import Program, run


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {queue["queue"]: queue for queue in document["queues"]}


def test_each_queue_is_shown_with_its_counts_and_rates(program: Program) -> None:
    program.enqueue("a", "b", "c", queue="mail", now_ms=0)
    program.enqueue("later", queue="mail", run_at_ms=10**6)
    program.enqueue("x", queue="bills", now_ms=0)
    program.bury("a", now_ms=60_000)
    program.enqueue("held", queue="bills", priority=9)
    program.hold("held", now_ms=60_000)
    shown = by_name(program("queues", "--window", "2m", "--now-ms", "90000"))
    mail = shown["mail"]
    assert mail["counts"] == {"queued": 3, "running": 0, "completed": 0, "dead": 1, "held": 0}
    assert (mail["ready"], mail["delayed"], mail["died_per_minute"]) == (2, 1, 0.5)
    assert shown["bills"]["counts"]["held"] == 1
    later = by_name(program("queues", "--window", "10s", "--now-ms", "90000"))
    assert later["mail"]["died_per_minute"] == 0
    with program.ledger() as ledger:
        kept = ledger.capabilities
    assert mail["completed_per_minute"] == (0 if kept.keeps_claim_details else None)
    assert mail["oldest_ready_age_ms"] == (90_000 if kept.keeps_enqueue_time else None)


def test_an_empty_ledger_has_no_queues(program: Program) -> None:
    program.enqueue("a")
    program("jobs", "cancel", "a", "--now-ms", "1")
    program("dead", "purge", "a", "--now-ms", "1")
    assert program("queues", "--now-ms", "2")["queues"] == []


@pytest.mark.parametrize("window", ["0s", "0", "5w", "soon"])
def test_a_window_is_a_span_longer_than_none(program: Program, window: str) -> None:
    program.enqueue("a")
    assert "--window" in program.refused("queues", "--window", window)


@pytest.mark.usefixtures("scheduling")
def test_workers_claim_nothing_from_a_paused_queue_until_it_is_resumed(program: Program) -> None:
    program.enqueue("a", queue="mail")
    by = ["--actor", "ann", "--reason", "provider down"]
    paused = program("queues", "pause", "mail", *by, "--now-ms", "5")
    assert (paused["paused"], paused["changed"]) == (True, True)
    assert program.claim(now_ms=6) == []
    assert by_name(program("queues", "--now-ms", "6"))["mail"]["paused"]
    shown = program("jobs", "show", "a", "--now-ms", "60005")
    assert "its queue 'mail' is paused (by ann 1 min ago: provider down)" in shown["why"]
    assert program("queues", "resume", "mail", *by, "--now-ms", "7")["changed"]
    assert program.claim(now_ms=8) == ["a"]
    found = [(e["action"], e["id"], e["actor"], e["reason"]) for e in program("audit")["audit"]]
    assert found == [("pause", "mail", "ann", "provider down"), ("resume", "mail", "ann", "provider down")]


@pytest.mark.usefixtures("scheduling")
def test_to_pause_twice_changes_nothing_and_is_no_error(program: Program) -> None:
    program.enqueue("a", queue="mail")
    assert program("queues", "pause", "mail")["changed"]
    assert not program("queues", "pause", "mail")["changed"]
    assert program("queues", "resume", "mail")["changed"]
    assert not program("queues", "resume", "mail")["changed"]
    assert len(program("audit")["audit"]) == 2


@pytest.mark.usefixtures("scheduling")
def test_a_paused_queue_without_jobs_is_shown_and_doubted(program: Program) -> None:
    program.enqueue("a", queue="mail")
    ended = run("queues", "pause", "mial", "--store", program.store)
    assert (ended.status, json.loads(ended.out)["changed"]) == (0, True)
    assert "has no jobs yet; is that its name?" in ended.err
    assert run("queues", "pause", "bills", "--store", program.store).status == 0
    assert list(by_name(program("queues"))) == ["bills", "mail", "mial"]
    shown = by_name(program("queues"))
    assert (shown["mial"]["paused"], shown["mial"]["ready"]) == (True, 0)


def test_a_queue_s_name_is_checked(program: Program) -> None:
    program.enqueue("a")
    assert "must match" in program.refused("queues", "pause", "Mail")
