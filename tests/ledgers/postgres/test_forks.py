"""A process that has used a ledger and forks: parent and children go on, each over connections of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fencepost.core import Ledger

Sql = Callable[..., list[tuple[Any, ...]]]

FORKED = """
import os, sys
from fencepost.core import ClaimRequest, NewJob, open_ledger

ledger = open_ledger(sys.argv[1])
ledger.enqueue([NewJob(f"job-{n}", "text") for n in range(40)])
request = ClaimRequest(claimant="me", lease_ms=60_000, max_attempts=3)
assert len(ledger.claim(request)) == 1
ledger.wait(0.01)  # it listens, over a connection that the children inherit
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        for _ in range(10):
            (job,) = ledger.claim(request)
            assert ledger.complete(job.id, job.version)
        ledger.wait(0.01)
        ledger.close()
        sys.exit(0)  # everything is collected and torn down, what came over the fork included
    children.append(child)
for _ in range(9):
    (job,) = ledger.claim(request)
    assert ledger.complete(job.id, job.version)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
assert ledger.counts() == {"queued": 0, "running": 1, "completed": 39, "dead": 0, "held": 0}

# The parent still hears of commits over the connection on which it listened before.
listener = ledger._watch._connection
while ledger.wait(0.01):
    ledger.claim(request)
child = os.fork()
if child == 0:
    ledger.enqueue([NewJob("news", "text")])
    os._exit(0)
assert ledger.wait(30)
assert ledger._watch._connection is listener and not listener.closed
assert os.waitpid(child, 0)[1] == 0
ledger.close()
"""

FORKED_WHILE_BUSY = """
import os, sys, threading
from fencepost.core import ClaimRequest, NewJob, open_ledger

ledger = open_ledger(sys.argv[1])
ledger.claim(ClaimRequest(claimant="me", lease_ms=1, max_attempts=1))
inside, go_on = threading.Event(), threading.Event()

def write():
    with ledger._database.write():
        inside.set()
        assert go_on.wait(60)

threads = [threading.Thread(target=write), threading.Thread(target=ledger.wait, args=(60,))]
for thread in threads:
    thread.start()
inside.wait()
while ledger._watch._connection is None:
    pass
child = os.fork()
if child == 0:
    ledger.enqueue([NewJob("a", "text")])
    ledger.claim(ClaimRequest(claimant="me", lease_ms=60_000, max_attempts=1))
    ledger.wait(0.01)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
go_on.set()
for thread in threads:
    thread.join()
assert ledger.counts()["running"] == 1
ledger.close()
"""


@pytest.mark.parametrize("script", [FORKED, FORKED_WHILE_BUSY], ids=["at rest", "while threads use it"])
def test_a_forked_child_uses_connections_of_its_own(ledger: Ledger, url: str, script: str) -> None:
    # What came over the fork is open when a child ends: only the parent may close it.
    warnings = ("-W", "error", "-W", "ignore::ResourceWarning")
    ended = subprocess.run(
        [sys.executable, *warnings, "-c", script, url], capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (0, "")


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


def test_a_child_goes_on_when_its_parent_has_closed_the_ledger(ledger: Ledger, url: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", OUTLIVING, url], check=True, timeout=60)
    assert [job.id for job in ledger.jobs().jobs] == ["before", "beside", "after"]
