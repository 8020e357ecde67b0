"""Schedules: each boundary fires once, whoever ticks and whatever dies; a bad row harms nobody else."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import (
    InvalidInput,
    LedgerFailed,
    NewJob,
    Schedule,
    Stamps,
)
from fencepost.core.ledgers.sqlite import SqliteLedger

Open = Callable[..., SqliteLedger]
Look = Callable[..., list[tuple[Any, ...]]]

EVERY_S = Schedule("tick", "@every 1s", "text")


def test_all_that_a_schedule_says_comes_back(ledger: SqliteLedger) -> None:
    schedule = Schedule("a", "@every 7d", "t\0", "mail", "send", -5, 0.5, Stamps(1, 2, 3, 4))
    ledger.register_schedule(schedule, now_ms=1_000)
    (found,) = ledger.schedules()
    assert found == Schedule(
        "a", "@every 7d", "t\0", "mail", "send", -5, 0.5, Stamps(1, 2, 3, 4), 604_801_000
    )


def test_a_schedule_that_could_never_fire_is_refused_and_makes_no_file(
    ledger: SqliteLedger, path: Path
) -> None:
    for bad in (
        Schedule("a", "@midnight", ""),
        Schedule("A", "@every 1s", ""),
        Schedule("a", "@every 1s", "", "Q"),
    ):
        with pytest.raises(InvalidInput):
            ledger.register_schedule(bad, now_ms=0)
    assert not path.exists()


BAD_ROWS = {
    "every": "@every banana",
    "queue": "No Queue",
    "effect": "",
    "text": "x" * 1_000_001,
    "priority": 2**31,
    "name": "a" * 51,
}


@pytest.mark.parametrize("column", BAD_ROWS)
def test_a_malformed_row_is_reported_by_name_and_the_others_fire(
    ledger: SqliteLedger, look: Look, column: str
) -> None:
    ledger.register_schedule(Schedule("bad", "@every 1s", "text"), now_ms=0)
    ledger.register_schedule(EVERY_S, now_ms=0)
    look(f"UPDATE fencepost_schedules SET {column} = ? WHERE name = 'bad'", (BAD_ROWS[column],))
    bad, good = ledger.tick(now_ms=1_000)
    assert bad.schedule == (BAD_ROWS["name"] if column == "name" else "bad")
    assert (bad.created, bad.boundary_ms) == (False, 1_000)
    assert bad.error is not None
    assert column in bad.error or "@every" in bad.error
    assert (good.id, good.created, good.error) == ("tick-1000", True, None)
    assert ledger.soonest() == 2_000, "one that cannot fire must not keep the scheduler awake for ever"
    assert len(ledger.schedules()) == 2
    assert ledger.unregister_schedule(bad.schedule)


def test_racing_tickers_fire_each_boundary_once(open_ledger: Open) -> None:
    ledgers = [open_ledger() for _ in range(10)]
    ledgers[0].register_schedule(EVERY_S, now_ms=0)
    for now_ms in range(1_000, 6_000, 1_000):
        start = threading.Barrier(10)

        def tick(ledger: SqliteLedger, now_ms: int = now_ms, start: threading.Barrier = start) -> list[str]:
            start.wait()
            return [fire.id for fire in ledger.tick(now_ms=now_ms)]

        with ThreadPoolExecutor(10) as threads:
            fired = [id for ids in threads.map(tick, ledgers) for id in ids]
        assert fired == [f"tick-{now_ms}"]
    assert ledgers[0].counts()["queued"] == 5


def test_an_id_that_is_bound_to_something_else_counts_as_fired(ledger: SqliteLedger) -> None:
    ledger.register_schedule(EVERY_S, now_ms=0)
    ledger.enqueue([NewJob("tick-1000", "another text", effect="other")], now_ms=0)
    fired = ledger.tick(now_ms=2_000)
    assert [(fire.id, fire.created) for fire in fired] == [("tick-1000", False), ("tick-2000", True)]
    assert ledger.soonest() == 3_000


def test_an_error_midway_undoes_the_whole_tick(ledger: SqliteLedger, look: Look) -> None:
    ledger.register_schedule(Schedule("a", "@every 1s", "text"), now_ms=0)
    ledger.register_schedule(Schedule("b", "@every 1s", "text"), now_ms=0)
    look(
        "CREATE TRIGGER injected BEFORE UPDATE ON fencepost_schedules WHEN OLD.name = 'b' "
        "BEGIN SELECT raise(ABORT, 'injected'); END"
    )
    with pytest.raises(LedgerFailed, match="injected"):
        ledger.tick(now_ms=1_000)
    assert ledger.counts()["queued"] == 0
    assert ledger.soonest() == 1_000
    look("DROP TRIGGER injected")
    assert [fire.created for fire in ledger.tick(now_ms=1_000)] == [True, True]


KILLED = """
import os, signal, sys
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.ledgers.sqlite.transaction import Transaction

change = Transaction.change

def killing(self, name, parameters=()):
    if name == "advance_schedules":
        os.kill(os.getpid(), signal.SIGKILL)
    return change(self, name, parameters)

Transaction.change = killing
SqliteLedger(sys.argv[1]).tick(now_ms=3_000)
"""


def test_a_crash_in_the_middle_of_a_tick_undoes_fires_and_advance(ledger: SqliteLedger, path: Path) -> None:
    ledger.register_schedule(EVERY_S, now_ms=0)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -9
    assert ledger.counts()["queued"] == 0
    assert ledger.soonest() == 1_000
    assert [fire.id for fire in ledger.tick(now_ms=3_000)] == ["tick-1000", "tick-2000", "tick-3000"]


def test_fired_jobs_carry_expiry_and_stamps(ledger: SqliteLedger) -> None:
    stamps = Stamps(max_attempts=2, visibility_timeout_s=0.5)
    ledger.register_schedule(
        Schedule("a", "@every 1s", "t", "mail", "send", 4, expires_s=2, stamps=stamps), now_ms=0
    )
    ledger.tick(now_ms=1_500)
    job = ledger.get_job("a-1000")
    assert job is not None
    assert (job.queue, job.effect, job.priority, job.expires_at_ms) == ("mail", "send", 4, 3_000)
    assert (job.stamps, job.enqueued_at_ms, job.run_at_ms) == (stamps, 1_500, None)
