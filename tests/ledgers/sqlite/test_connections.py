"""Connections: one for each thread and process, explicit transactions, and locks that others hold."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import ClaimRequest, JobQuery, LedgerBusy, LedgerFailed, NewJob
from fencepost.core.ledgers.sqlite import SqliteLedger

Open = Callable[..., SqliteLedger]
InThread = Callable[[Callable[[], object]], object]


def descriptors(path: Path) -> int:
    """How often this process has the database file open."""
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sum(os.path.exists(link) and os.readlink(link) == str(path) for link in links)


def claim(ledger: SqliteLedger, *, now_ms: int | None = 0, **options: Any) -> list[str]:
    asked: dict[str, Any] = {"claimant": "me", "lease_ms": 1_000, "max_attempts": 3} | options
    return [job.id for job in ledger.claim(ClaimRequest(**asked), now_ms=now_ms)]


# -- locks --


def test_a_lock_that_is_not_had_in_time_is_busy_and_nothing_is_changed(open_ledger: Open, path: Path) -> None:
    ledger = open_ledger(busy_timeout_ms=10)
    ledger.enqueue([NewJob("a", "text")])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for write in (lambda: ledger.enqueue([NewJob("b", "text")]), lambda: claim(ledger)):
        with pytest.raises(LedgerBusy, match="try again") as caught:
            write()
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert [job.id for job in ledger.jobs().jobs] == ["a"], "those who read do not wait for those who write"
    other.execute("ROLLBACK")
    other.close()
    assert claim(ledger) == ["a"]


def test_a_lock_that_is_given_back_in_time_is_had(open_ledger: Open, path: Path) -> None:
    ledger = open_ledger()
    ledger.enqueue([NewJob("a", "text")])
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as thread:
        claimed = thread.submit(claim, ledger)
        other.execute("ROLLBACK")
        assert claimed.result() == ["a"]
    other.close()


def test_threads_of_one_ledger_wait_for_one_another_within_the_time_out(open_ledger: Open) -> None:
    ledger = open_ledger(busy_timeout_ms=10)
    ledger.counts()
    with ThreadPoolExecutor(1) as thread, ledger._database.write():
        claimed = thread.submit(claim, ledger)
        with pytest.raises(LedgerBusy, match="another thread"):
            claimed.result()


def test_a_reader_in_the_middle_of_its_read_blocks_no_writer(ledger: SqliteLedger, path: Path) -> None:
    ledger.enqueue([NewJob("a", "text")])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT state FROM fencepost_jobs").fetchone() == ("queued",)
    assert claim(ledger) == ["a"]
    assert reader.execute("SELECT state FROM fencepost_jobs").fetchone() == ("queued",), "its snapshot stands"
    reader.close()


def test_the_clock_is_read_under_the_lock(open_ledger: Open, path: Path) -> None:
    """Read before it, a lease could begin in the past of a claim that came later."""
    other = sqlite3.connect(path.with_name("unused.db"))
    seen: list[bool] = []

    def clock() -> int:
        with ThreadPoolExecutor(1) as thread:
            # Whoever reads the clock holds the lock: nobody else can take it.
            seen.append(thread.submit(is_locked).result())
        return 7

    def is_locked() -> bool:
        probe = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            probe.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        finally:
            probe.close()
        return False

    ledger = open_ledger(clock=clock)
    ledger.enqueue([NewJob("a", "text")])
    claim(ledger, now_ms=None)
    ledger.complete("a", 1)
    assert seen == [True] * 3
    other.close()


def test_every_cursor_is_drained(ledger: SqliteLedger, path: Path) -> None:
    """An undrained RETURNING leaves its change uncommitted, an undrained SELECT pins a snapshot."""
    ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(50)])
    claim(ledger, limit=20)
    ledger.get_job("job-1")
    ledger.jobs(JobQuery(limit=10))
    ledger.read_inputs(["job-1"])
    other = sqlite3.connect(path)
    assert other.execute("SELECT count(*) FROM fencepost_jobs WHERE state = 'running'").fetchone() == (20,)
    # A checkpoint that truncates succeeds only if no connection holds a snapshot.
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    other.close()
    with ledger._database.read() as transaction:
        assert transaction.connection.in_transaction
    assert not transaction.connection.in_transaction


# -- threads --


def test_each_thread_has_a_connection_of_its_own(ledger: SqliteLedger, in_thread: InThread) -> None:
    def connection() -> sqlite3.Connection:
        with ledger._database.read() as transaction:
            return transaction.connection

    assert in_thread(connection) is not connection()
    assert connection() is connection()


def test_the_connection_of_a_thread_that_has_ended_is_closed(
    ledger: SqliteLedger, path: Path, in_thread: InThread
) -> None:
    in_thread(ledger.counts)
    before = descriptors(path)
    for _ in range(20):
        in_thread(ledger.counts)
    gc.collect()
    assert descriptors(path) <= before
    assert len(ledger._database._handles) == 1, "the last one waits for the next to be opened"


def test_close_closes_the_connections_of_all_threads(ledger: SqliteLedger, path: Path) -> None:
    enough, ready = threading.Event(), threading.Barrier(4)

    def live() -> None:
        ledger.counts()
        ready.wait()
        enough.wait()

    threads = [threading.Thread(target=live) for _ in range(3)]
    for thread in threads:
        thread.start()
    ready.wait()
    claim(ledger)  # opens the connection of the watch, too
    assert descriptors(path) >= 4
    ledger.close()
    assert descriptors(path) == 0
    enough.set()
    for thread in threads:
        thread.join()


def test_close_waits_for_a_transaction_of_another_thread(ledger: SqliteLedger) -> None:
    ledger.counts()
    inside, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with ledger._database.write() as transaction:
            inside.set()
            go_on.wait()
            transaction.change("pause", ("q",))

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write)
        inside.wait()
        closing = pool.submit(ledger.close)
        go_on.set()
        writing.result()
        closing.result()
    with SqliteLedger(ledger.location) as again:
        assert again.paused() == ["q"]


def test_a_closed_ledger_says_so(ledger: SqliteLedger, in_thread: InThread) -> None:
    ledger.counts()
    ledger.close()
    ledger.close()
    for verb in (ledger.counts, lambda: claim(ledger), lambda: ledger.wait(0)):
        with pytest.raises(LedgerFailed, match="closed"):
            verb()
        with pytest.raises(LedgerFailed, match="closed"):
            in_thread(verb)


def test_threads_that_use_and_close_the_ledger_at_once_end_with_an_answer_or_an_error(
    open_ledger: Open,
) -> None:
    for _ in range(20):
        ledger = open_ledger(synchronous="OFF")
        ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(50)])
        start = threading.Barrier(5)

        def work(ledger: SqliteLedger = ledger, start: threading.Barrier = start) -> str:
            start.wait()
            try:
                while claim(ledger, limit=2):
                    ledger.jobs(JobQuery(limit=5))
            except LedgerFailed as error:
                return str(error)
            return "closed"

        with ThreadPoolExecutor(4) as pool:
            workers = [pool.submit(work) for _ in range(4)]
            start.wait()
            ledger.close()
            assert all("closed" in worker.result() for worker in workers)
        os.unlink(ledger.location)


# -- processes --

FORKED = """
import os, sys
from fencepost.core import ClaimRequest, NewJob, open_ledger

ledger = open_ledger(sys.argv[1])
ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(40)])
request = ClaimRequest(claimant="me", lease_ms=60_000, max_attempts=3)
assert len(ledger.claim(request)) == 1
assert ledger.wait(10)
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(10):
            (job,) = ledger.claim(request)
            assert ledger.complete(job.id, job.version)
        ledger.wait(0)
        ledger.close()
        os._exit(0)
    children.append(child)
for _ in range(9):
    (job,) = ledger.claim(request)
    assert ledger.complete(job.id, job.version)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
assert ledger.counts() == {"queued": 0, "running": 1, "completed": 39, "dead": 0, "held": 0}
ledger.close()
"""


def test_a_forked_child_opens_connections_of_its_own(path: Path) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FORKED, str(path)], check=True, timeout=120)
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


FORKED_WHILE_BUSY = """
import os, sys, threading
from fencepost.core import ClaimRequest, NewJob, open_ledger

ledger = open_ledger(sys.argv[1])
ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1))
assert not ledger.wait(0)
inside = threading.Event()

def write():
    with ledger._database.write():
        inside.set()

threads = [threading.Thread(target=write), threading.Thread(target=ledger.wait, args=(5,))]
for thread in threads:
    thread.start()
inside.wait()
child = os.fork()
if child == 0:
    ledger.enqueue([NewJob("a", "text")])
    assert ledger.wait(0)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for thread in threads:
    thread.join()
assert ledger.counts()["queued"] == 1
"""


@pytest.mark.parametrize("run", range(10))
def test_a_fork_waits_for_the_transactions_of_other_threads(path: Path, run: int) -> None:
    """It must not come in the middle of the end of a thread either, whose connection is about to be closed."""
    command = [sys.executable, "-W", "error", "-c", FORKED_WHILE_BUSY, str(path)]
    subprocess.run(command, check=True, timeout=60)


OUTLIVING = """
import os, sys
from fencepost.core import NewJob, open_ledger

ledger = open_ledger(sys.argv[1])
ledger.enqueue([NewJob("before", "text")])
closed, tell_closed = os.pipe()
used, tell_used = os.pipe()
child = os.fork()
if child == 0:
    ledger.enqueue([NewJob("beside", "text")])
    os.write(tell_used, b".")
    os.read(closed, 1)
    ledger.enqueue([NewJob("after", "text")])
    os._exit(0)
os.read(used, 1)
ledger.close()
os.write(tell_closed, b".")
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_child_that_outlives_its_parents_connection_loses_no_commit(
    path: Path, ledger: SqliteLedger
) -> None:
    """The parent must not take the log away as the last one: it cannot see the locks of the child."""
    subprocess.run([sys.executable, "-c", OUTLIVING, str(path)], check=True, timeout=60)
    assert [job.id for job in ledger.jobs().jobs] == ["before", "beside", "after"]


def test_a_fork_that_python_was_not_told_of_is_refused(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.counts()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(LedgerFailed, match="forked"):
        ledger.counts()


KILLED = """
import sys
from fencepost.core import ClaimRequest, NewJob, Receipt, Settlement, open_ledger
from fencepost.core.model.inputs import text_sha256

ledger = open_ledger(sys.argv[1])
print("ready", flush=True)
number = 0
while True:
    ledger.enqueue([NewJob(f"{sys.argv[2]}-{number}-{n}", "text") for n in range(20)])
    number += 1
    jobs = ledger.claim(ClaimRequest(claimant="me", lease_ms=600_000, max_attempts=3, limit=15))
    done = [Settlement(job.id, job.version, Receipt(job.id, text_sha256("text"), {})) for job in jobs[:10]]
    ledger.settle(done)
    for job in jobs[10:]:
        ledger.fail(job.id, job.version, error="no")
"""


def test_a_process_that_is_killed_anywhere_leaves_whole_transactions(
    path: Path, ledger: SqliteLedger
) -> None:
    for number in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), f"run{number}"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # Not a time to wait for: whatever the process is doing after so many jobs is a good place to die.
        while ledger.counts()["completed"] < 7 * (number + 1):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for broken in (
        "SELECT id FROM fencepost_jobs WHERE state = 'completed' AND id NOT IN (SELECT id FROM fencepost_effects)",
        "SELECT id FROM fencepost_effects WHERE id NOT IN "
        "(SELECT id FROM fencepost_jobs WHERE state = 'completed')",
        "SELECT id FROM fencepost_jobs WHERE id IN (SELECT id FROM fencepost_dead)",
        "SELECT id FROM fencepost_inputs WHERE id NOT IN "
        "(SELECT id FROM fencepost_jobs UNION ALL SELECT id FROM fencepost_dead)",
    ):
        assert check.execute(broken).fetchall() == [], broken
    counts = ledger.counts()
    assert sum(counts.values()) % 20 == 0, "requests of twenty are there whole or not at all"
    check.close()
