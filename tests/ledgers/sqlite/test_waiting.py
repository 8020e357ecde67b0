"""Waking: every commit ends a wait, whoever made it and whatever became of the events."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fencepost.core import ClaimRequest, LedgerFailed, NewJob
from fencepost.core.ledgers.folder_watch import FolderWatch
from fencepost.core.ledgers.sqlite import SqliteLedger, watch

Open = Callable[..., SqliteLedger]

LONG_S = 60
"""A wait that lasts so long has missed its commit."""


def look(ledger: SqliteLedger) -> None:
    """A claim that finds nothing: what has been committed before it is known."""
    assert (
        ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1, queues=["none"]), now_ms=0) == []
    )


def test_a_wait_ends_at_a_commit_of_another_process(ledger: SqliteLedger, path: Path) -> None:
    look(ledger)
    code = (
        "import sys; from fencepost.core import NewJob, open_ledger\n"
        "with open_ledger(sys.argv[1]) as ledger: ledger.enqueue([NewJob('a', 'text')])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    assert ledger.wait(LONG_S)
    assert ledger.get_job("a") is not None, "what ended the wait can be seen"
    assert process.wait() == 0


def test_a_wait_ends_at_once_where_the_commit_came_before_it(ledger: SqliteLedger, open_ledger: Open) -> None:
    look(ledger)
    open_ledger().enqueue([NewJob("a", "text")])
    assert ledger.wait(0)


def test_nothing_to_wait_for_is_not_known_before_the_first_claim(ledger: SqliteLedger) -> None:
    ledger.enqueue([NewJob("a", "text")])
    assert ledger.wait(0)
    look(ledger)
    assert not ledger.wait(0)


def test_a_commit_between_the_look_and_the_sleep_is_not_missed(
    ledger: SqliteLedger, open_ledger: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_ledger()
    sleep = FolderWatch.sleep

    def commit_first(self: FolderWatch, timeout_s: float) -> None:
        monkeypatch.setattr(FolderWatch, "sleep", sleep)
        other.enqueue([NewJob("a", "text")])
        sleep(self, timeout_s)

    look(ledger)
    monkeypatch.setattr(FolderWatch, "sleep", commit_first)
    assert ledger.wait(LONG_S)


@pytest.mark.parametrize("events", ["none at all", "some that mean nothing"])
def test_without_events_the_wait_ends_all_the_same(
    ledger: SqliteLedger, open_ledger: Open, monkeypatch: pytest.MonkeyPatch, events: str
) -> None:
    looked = threading.Event()

    def deaf(self: FolderWatch, timeout_s: float) -> None:
        looked.set()
        if events == "none at all":
            time.sleep(timeout_s)

    monkeypatch.setattr(FolderWatch, "sleep", deaf)
    look(ledger)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(ledger.wait, LONG_S)
        looked.wait()
        open_ledger().enqueue([NewJob("a", "text")])
        assert waiting.result()


def test_a_system_without_watches_is_polled(
    ledger: SqliteLedger, open_ledger: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inotify_simple", None)
    look(ledger)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(ledger.wait, LONG_S)
        open_ledger().enqueue([NewJob("a", "text")])
        assert waiting.result()


def test_an_event_before_its_commit_is_visible_loses_nothing(
    ledger: SqliteLedger, open_ledger: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is written first, and only then synced and made visible: the event comes too early."""
    other = open_ledger()
    other.counts()
    slept, commit = threading.Event(), threading.Event()

    def too_early(self: FolderWatch, timeout_s: float) -> None:
        slept.set()
        commit.wait()

    monkeypatch.setattr(FolderWatch, "sleep", too_early)
    monkeypatch.setattr(watch, "SAFETY_POLL_S", LONG_S)
    look(ledger)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(ledger.wait, LONG_S)
        slept.wait()
        commit.set()
        other.enqueue([NewJob("a", "text")])
        assert waiting.result()


def test_threads_may_wait_on_one_ledger(ledger: SqliteLedger, open_ledger: Open) -> None:
    look(ledger)
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(ledger.wait, LONG_S) for _ in range(4)]
        open_ledger().enqueue([NewJob("a", "text")])
        assert all(wait.result() for wait in waiting)


def test_each_commit_is_told_once_a_claim_has_looked(ledger: SqliteLedger, open_ledger: Open) -> None:
    other = open_ledger()
    for number in range(50):
        look(ledger)
        assert not ledger.wait(0)
        other.enqueue([NewJob(f"job-{number}", "text")])
        assert ledger.wait(0)
        assert ledger.wait(0)


def test_a_wait_in_the_middle_of_which_the_ledger_is_closed_ends(ledger: SqliteLedger) -> None:
    look(ledger)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(ledger.wait, LONG_S)
        ledger.close()
        with pytest.raises(LedgerFailed, match="closed"):
            waiting.result()
