"""Copying a whole ledger: directory to SQLite and back, crashes on the way, and what a destination cannot keep."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    IdentityConflict,
    InvalidInput,
    Ledger,
    LedgerBusy,
    LedgerFailed,
    LedgerSealed,
    LimitExceeded,
    NewJob,
    Receipt,
    Row,
    Schedule,
    Stamps,
    Unsupported,
    open_ledger,
)
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.ledgers.transfer import copy_ledger
from fencepost.core.model.inputs import text_sha256
from fencepost.core.testing import KEEPS_LITTLE, ModelLedger

Kinds = tuple[str, str]
DIRECTORY, SQLITE = "store", "jobs.db"


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[[str], Ledger]]:
    opened: list[Ledger] = []

    def open_one(name: str) -> Ledger:
        opened.append(open_ledger(tmp_path / name))
        return opened[-1]

    yield open_one
    for ledger in opened:
        ledger.close()


def fill(ledger: Ledger, count: int = 30) -> None:
    """Jobs in all states, a purged id, and an input that is bound to it."""
    stamps = Stamps(visibility_timeout_s=0.5, max_attempts=7, dead_letter_retention_s=60)
    jobs = [NewJob(f"job-{n:04}", f"text\0 of {n} ü", priority=n % 3, stamps=stamps) for n in range(count)]
    ledger.enqueue(jobs, now_ms=1_000)
    ledger.enqueue(
        [NewJob("later", "text", queue="mail", run_at_ms=9_000, expires_at_ms=99_000)], now_ms=1_000
    )
    claimed = ledger.claim(
        ClaimRequest(claimant="me", lease_ms=100, max_attempts=3, limit=12, queues=["default"]), now_ms=2_000
    )
    for place, job in enumerate(claimed):
        if place < 4:
            ledger.publish(
                Receipt(job.id, text_sha256(dict(texts(ledger, [job.id]))[job.id]), {"z": 1, "a": [2]})
            )
        if place < 3:
            ledger.complete(job.id, job.version, now_ms=2_010)
        elif place < 6:
            ledger.fail(job.id, job.version, error=f"no {place}", now_ms=2_020)
        elif place < 8:
            ledger.hold(job.id, job.version, error="who knows", now_ms=2_030)
        elif place < 10:
            ledger.retry(job.id, job.version, run_at_ms=8_000, error="again", max_attempts=3, now_ms=2_040)
    ledger.purge(claimed[5].id, now_ms=2_050)


def texts(ledger: Ledger, ids: list[str]) -> Iterator[tuple[str, str]]:
    return ((id, item.text) for id, item in ledger.read_inputs(ids).items())


def rows(ledger: Ledger) -> list[Row]:
    found: list[Row] = []
    after: str | None = None
    while True:
        page = ledger.export_rows(after=after, limit=7)
        found += page.rows
        after = page.next
        if after is None:
            return found


def contents(ledger: Ledger) -> list[tuple[object, ...]]:
    """All that every kind of ledger keeps, jobs in order of enqueue; kinds differ in where purged ids stand."""
    return [
        (
            row.id,
            None if row.job is None else (row.job.state, row.job.version, row.job.attempts, row.job.queue,
             row.job.priority, row.job.run_at_ms, row.job.expires_at_ms, row.job.last_error, row.job.stamps),
            row.purged_version,
            row.input,
            None if row.receipt is None else row.receipt.document(),
        )
        for row in sorted(rows(ledger), key=lambda row: (row.job is None, row.id if row.job is None else ""))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source_name", "destination_name"), [(DIRECTORY, SQLITE), (SQLITE, DIRECTORY), (SQLITE, "other.db")]
)
def test_everything_arrives_as_it_was(
    open_store: Callable[[str], Ledger], source_name: str, destination_name: str
) -> None:
    source, destination = open_store(source_name), open_store(destination_name)
    fill(source)
    before = contents(source)
    copied = copy_ledger(source, destination, now_ms=5_000)
    assert contents(destination) == before
    assert destination.counts() == source.counts()
    assert (copied.rows, copied.new) == (31, 31)
    again = copy_ledger(source, destination, now_ms=5_000)
    assert (again.rows, again.new) == (31, 0)
    assert contents(destination) == before


def test_the_jobs_go_on_in_the_destination_and_not_in_the_source(open_store: Callable[[str], Ledger]) -> None:
    source, destination = open_store(DIRECTORY), open_store(SQLITE)
    fill(source)
    copy_ledger(source, destination, actor="ops", now_ms=5_000)
    with pytest.raises(LedgerSealed, match=r"jobs\.db"):
        source.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3), now_ms=6_000)
    assert source.audit()[-1].action == "seal"
    claimed = destination.claim(
        ClaimRequest(claimant="me", lease_ms=100, max_attempts=3, limit=40), now_ms=9_000
    )
    # All but the completed, the dead, the held and the purged; two that were running have been reclaimed.
    assert len(claimed) == 31 - 3 - 3 - 2
    # The delayed ones have become ready, in the order of their run_at among their priority.
    assert [job.priority for job in claimed] == sorted((job.priority for job in claimed), reverse=True)


def test_a_live_lease_is_refused_and_nothing_is_sealed(open_store: Callable[[str], Ledger]) -> None:
    source, destination = open_store(SQLITE), open_store(DIRECTORY)
    fill(source)
    with pytest.raises(LedgerBusy, match="live leases"):
        copy_ledger(source, destination, now_ms=2_050)
    assert source.sealed_for() is None
    assert rows(destination) == []
    destination.enqueue([NewJob("a", "text")])


CRASH = """
import os, signal, sys
from fencepost.core import open_ledger
from fencepost.core.ledgers import transfer

transfer.PAGE = 5

def progress(passed):
    if passed >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

with open_ledger(sys.argv[1]) as source, open_ledger(sys.argv[2]) as destination:
    transfer.copy_ledger(source, destination, now_ms=5_000, progress=progress)
"""


@pytest.mark.parametrize(("source_name", "destination_name"), [(DIRECTORY, SQLITE), (SQLITE, DIRECTORY)])
def test_a_copy_that_crashed_goes_on_when_it_is_run_again(
    open_store: Callable[[str], Ledger], tmp_path: Path, source_name: str, destination_name: str
) -> None:
    with open_ledger(tmp_path / source_name) as source:
        fill(source)
        before, ids = contents(source), [row.id for row in rows(source)]
    for passed in (5, 10, 10, 25):
        run = [
            sys.executable,
            "-c",
            CRASH,
            str(tmp_path / source_name),
            str(tmp_path / destination_name),
            str(passed),
        ]
        assert subprocess.run(run, check=False).returncode == -9
    source, destination = open_store(source_name), open_store(destination_name)
    assert {row.id for row in rows(destination)} == set(ids[:25])
    # A job that has come may have its receipt, or its later fence, still to come: nobody works here yet.
    with pytest.raises(LedgerSealed, match=source_name):
        destination.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3), now_ms=5_000)
    with pytest.raises(LedgerSealed, match=source_name):
        destination.enqueue([NewJob("new", "text")])
    with pytest.raises(LedgerSealed, match=source_name):
        copy_ledger(destination, open_store("third.db"), now_ms=5_000)
    with pytest.raises(LedgerSealed, match=source_name):
        copy_ledger(open_store("fourth.db"), destination, now_ms=5_000)
    copied = copy_ledger(source, destination, now_ms=5_000)
    assert (copied.rows, copied.new) == (31, 6)
    assert contents(destination) == before
    assert destination.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3), now_ms=5_000)


CRASH_AT_A_VERB = """
import os, signal, sys
from fencepost.core import open_ledger
from fencepost.core.ledgers import transfer

class Dying:
    def __init__(self, ledger, place):
        self._ledger, (self._verb, self._when) = ledger, place.split()

    def __getattr__(self, name):
        found = getattr(self._ledger, name)
        if name != self._verb:
            return found

        def call(*arguments, **named):
            if self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            found(*arguments, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        return call

with open_ledger(sys.argv[1]) as source, open_ledger(sys.argv[2]) as destination:
    transfer.copy_ledger(Dying(source, sys.argv[3]), Dying(destination, sys.argv[3]), now_ms=5_000)
"""


def works(ledger: Ledger) -> bool:
    """Whether it takes a change."""
    try:
        ledger.sweep_expired(now_ms=5_000)
    except LedgerSealed:
        return False
    return True


@pytest.mark.parametrize(("source_name", "destination_name"), [(DIRECTORY, SQLITE), (SQLITE, DIRECTORY)])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["begin_copy", "seal", "import_rows", "end_copy"])
def test_wherever_a_copy_dies_no_job_is_open_to_work_in_both_and_the_same_copy_goes_on(
    open_store: Callable[[str], Ledger],
    tmp_path: Path,
    verb: str,
    when: str,
    source_name: str,
    destination_name: str,
) -> None:
    with open_ledger(tmp_path / source_name) as source:
        fill(source)
        before = contents(source)
    names = [str(tmp_path / source_name), str(tmp_path / destination_name)]
    run = [sys.executable, "-c", CRASH_AT_A_VERB, *names, f"{verb} {when}"]
    assert subprocess.run(run, check=False).returncode == -9
    source, destination = open_store(source_name), open_store(destination_name)
    place = ["begin_copy", "seal", "import_rows", "end_copy"].index(verb) + (when == "after")
    assert works(source) == (place <= 1)
    assert works(destination) == (place in (0, 4))
    copied = copy_ledger(source, destination, now_ms=5_000)
    assert copied.rows == 31
    assert contents(destination) == before
    assert (works(source), works(destination)) == (False, True)


def killed_midway(tmp_path: Path, source: str, destination: str) -> None:
    """A copy of which five rows have come."""
    with open_ledger(tmp_path / source) as ledger:
        fill(ledger)
    run = [sys.executable, "-c", CRASH, str(tmp_path / source), str(tmp_path / destination), "5"]
    assert subprocess.run(run, check=False).returncode == -9


def test_a_copy_that_cannot_go_on_leaves_what_has_come_closed(
    open_store: Callable[[str], Ledger], tmp_path: Path
) -> None:
    killed_midway(tmp_path, SQLITE, "other.db")
    destination = open_store("other.db")
    with (
        SqliteLedger(tmp_path / SQLITE, busy_timeout_ms=20) as busy,
        closing(sqlite3.connect(tmp_path / SQLITE, isolation_level=None)) as blocker,
    ):
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy):
            copy_ledger(busy, destination, now_ms=5_000)
    with pytest.raises(LedgerSealed, match=SQLITE):
        destination.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3), now_ms=5_000)
    assert copy_ledger(open_store(SQLITE), destination, now_ms=5_000).new == 26


def test_the_same_destination_under_another_name_stays_closed(
    open_store: Callable[[str], Ledger], tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    killed_midway(tmp_path, SQLITE, "link/other.db")
    source, destination = open_store(SQLITE), open_store("real/other.db")
    with pytest.raises(LedgerSealed, match=r"link/other\.db"):
        copy_ledger(source, destination, now_ms=5_000)
    with pytest.raises(LedgerSealed, match=SQLITE):
        destination.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3), now_ms=5_000)
    assert copy_ledger(source, open_store("link/other.db"), now_ms=5_000).new == 26


def test_of_two_copies_at_once_the_first_to_end_decides(open_store: Callable[[str], Ledger]) -> None:
    source, destination = open_store(SQLITE), open_store("other.db")
    fill(source, count=300)
    source.pause("mail", now_ms=0)

    def another_ends(passed: int) -> None:
        if not destination.audit(id=source.location)[1:]:
            copy_ledger(source, destination, now_ms=5_000)
            destination.claim(
                ClaimRequest(claimant="me", lease_ms=100, max_attempts=3, limit=300), now_ms=9_000
            )

    assert copy_ledger(source, destination, now_ms=5_000, progress=another_ends).rows == 301
    assert copy_ledger(source, destination, now_ms=9_000).new == 0
    assert destination.paused() == ["mail"]
    assert [entry.action for entry in destination.audit(id=source.location)] == ["copy-begin", "copy-end"]


def test_a_copy_that_another_process_ends_before_this_one_begins_is_left_as_it_is(
    open_store: Callable[[str], Ledger],
) -> None:
    source, destination = open_store(SQLITE), open_store("other.db")
    fill(source)

    class Late:
        """Begins when another copy has begun and ended."""

        def __getattr__(self, name: str) -> Any:
            return getattr(destination, name)

        def begin_copy(self, *arguments: Any, **named: Any) -> bool:
            copy_ledger(source, destination, now_ms=5_000)
            return destination.begin_copy(*arguments, **named)

    late: Any = Late()
    assert copy_ledger(source, late, now_ms=5_000).new == 0
    assert len(destination.audit()) == 2


def test_a_copy_whose_seal_lost_its_answer_goes_on(open_store: Callable[[str], Ledger]) -> None:
    source, destination = open_store(SQLITE), open_store("other.db")
    fill(source)

    class Deaf:
        """Seals, and loses the answer."""

        def __getattr__(self, name: str) -> Any:
            return getattr(source, name)

        def seal(self, *arguments: Any, **named: Any) -> None:
            source.seal(*arguments, **named)
            raise LedgerFailed("connection reset")

    deaf: Any = Deaf()
    with pytest.raises(LedgerFailed, match="connection reset"):
        copy_ledger(deaf, destination, now_ms=5_000)
    assert destination.copying_from() == source.location
    assert copy_ledger(source, destination, now_ms=5_000).new == 31


def test_what_refuses_the_seal_is_found_before_the_destination_is_closed(
    open_store: Callable[[str], Ledger],
) -> None:
    running, moved, coming = open_store(SQLITE), open_store("moved.db"), open_store("coming.db")
    fill(running)
    moved.seal("/elsewhere.db", now_ms=1)
    coming.begin_copy("/elsewhere.db", now_ms=1)
    destination = open_store("other.db")
    for source, error in ((running, LedgerBusy), (moved, LedgerSealed), (coming, LedgerSealed)):
        with pytest.raises(error):
            copy_ledger(source, destination, now_ms=2_050)
        assert (destination.copying_from(), destination.audit()) == (None, [])


@pytest.mark.parametrize(("source_name", "destination_name"), [(DIRECTORY, SQLITE), (SQLITE, DIRECTORY)])
def test_a_receipt_of_neither_job_nor_input_goes_along(
    open_store: Callable[[str], Ledger], source_name: str, destination_name: str
) -> None:
    source, destination = open_store(source_name), open_store(destination_name)
    source.publish(Receipt("z", "0" * 64, {"n": 1}))
    assert copy_ledger(source, destination, now_ms=1).rows == 1
    assert destination.receipts(["z"])["z"].outcome == {"n": 1}


def test_a_destination_that_holds_something_else_is_refused_before_the_seal(
    open_store: Callable[[str], Ledger],
) -> None:
    source, destination = open_store(DIRECTORY), open_store(SQLITE)
    fill(source)
    destination.enqueue([NewJob("other", "text")])
    with pytest.raises(IdentityConflict, match="'other'"):
        copy_ledger(source, destination, now_ms=5_000)
    assert source.sealed_for() is None


def test_a_copy_that_has_ended_is_left_as_it_is(open_store: Callable[[str], Ledger]) -> None:
    source, destination = open_store(SQLITE), open_store("other.db")
    fill(source)
    source.pause("mail", now_ms=4_000)
    copy_ledger(source, destination, now_ms=5_000)
    assert destination.claim(ClaimRequest(claimant="me", lease_ms=100, max_attempts=3), now_ms=9_000)
    destination.enqueue([NewJob("new", "text")], now_ms=9_000)
    destination.resume("mail", now_ms=9_000)
    after, audit = contents(destination), destination.audit()
    again = copy_ledger(source, destination, now_ms=9_000)
    assert (again.rows, again.new) == (31, 0)
    assert (contents(destination), destination.audit(), destination.paused()) == (after, audit, [])


def test_a_source_goes_to_one_destination_only(open_store: Callable[[str], Ledger]) -> None:
    source = open_store(DIRECTORY)
    fill(source)
    copy_ledger(source, open_store(SQLITE), now_ms=5_000)
    third = open_store("other.db")
    with pytest.raises(LedgerSealed, match=r"jobs\.db"):
        copy_ledger(source, third, now_ms=5_000)
    assert third.copying_from() is None


def test_a_ledger_that_was_moved_on_is_no_destination(open_store: Callable[[str], Ledger]) -> None:
    first, second, third = open_store(DIRECTORY), open_store(SQLITE), open_store("other.db")
    fill(first)
    copy_ledger(first, second, now_ms=5_000)
    copy_ledger(second, third, now_ms=5_000)
    fourth = open_store("fourth.db")
    fill(fourth)
    with pytest.raises(LedgerSealed, match=r"other\.db"):
        copy_ledger(fourth, second, now_ms=5_000)
    assert fourth.sealed_for() is None


def test_a_ledger_is_not_copied_to_itself(open_store: Callable[[str], Ledger]) -> None:
    with pytest.raises(InvalidInput, match="itself"):
        copy_ledger(open_store(SQLITE), open_store(SQLITE))


def test_schedules_and_pauses_go_along_with_their_phase(open_store: Callable[[str], Ledger]) -> None:
    source, destination = open_store(SQLITE), open_store("other.db")
    stamps = Stamps(max_attempts=2)
    source.register_schedule(
        Schedule("nightly", "@every 1h", "text", expires_s=5, stamps=stamps), now_ms=1_000
    )
    source.pause("mail", now_ms=0)
    source.tick(now_ms=3_601_000)
    copied = copy_ledger(source, destination, now_ms=3_700_000)
    assert (copied.schedules, copied.paused) == (1, 1)
    assert destination.schedules() == source.schedules()
    assert destination.soonest() == 7_201_000
    assert destination.paused() == ["mail"]
    assert [fire.id for fire in destination.tick(now_ms=7_201_000)] == ["nightly-7201000"]
    with pytest.raises(LedgerSealed):
        source.tick(now_ms=7_201_000)


def test_schedules_and_pauses_go_along_into_a_directory_and_back(open_store: Callable[[str], Ledger]) -> None:
    source, folder, last = open_store(SQLITE), open_store(DIRECTORY), open_store("other.db")
    schedule = Schedule(
        "nightly",
        "30 2 * * *",
        "a\0é",
        "mail",
        "send",
        -5,
        0.5,
        Stamps(1, 2, 3, 4),
        zone="Europe/Berlin",
        missed="none",
        overlap="skip",
    )
    source.apply_schedules([schedule], owner="shop", now_ms=0)
    source.run_schedule("nightly", now_ms=5)
    source.pause_schedule("nightly", now_ms=6)
    source.pause("mail", now_ms=0)
    copy_ledger(source, folder, now_ms=10)
    copy_ledger(folder, last, now_ms=20)
    assert [asdict(one) for one in last.schedules()] == [asdict(one) for one in source.schedules()]
    assert last.paused() == ["mail"]


def test_schedules_that_the_destination_cannot_keep_are_refused_by_name_before_the_seal(
    open_store: Callable[[str], Ledger],
) -> None:
    source, destination = open_store(SQLITE), ModelLedger(capabilities=KEEPS_LITTLE)
    source.register_schedule(Schedule("nightly", "@every 1h", "text"), now_ms=0)
    source.pause("mail", now_ms=0)
    with pytest.raises(Unsupported, match=r"schedule 'nightly', pause of queue 'mail'"):
        copy_ledger(source, destination, now_ms=0)
    assert source.sealed_for() is None


def test_more_than_a_directory_carries_is_refused_before_the_first_row(
    open_store: Callable[[str], Ledger], tmp_path: Path
) -> None:
    source, destination = open_store(SQLITE), open_store(DIRECTORY)
    for start in range(0, 40_000, 10_000):
        source.enqueue([NewJob(f"job-{n}", "text") for n in range(start, start + 10_000)], now_ms=0)
    with pytest.raises(LimitExceeded, match=r"bytes"):
        copy_ledger(source, destination, now_ms=0)
    assert source.sealed_for() is None
    assert rows(destination) == []
    assert list((tmp_path / DIRECTORY / "inputs").glob("*")) == []
