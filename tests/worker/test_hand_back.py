"""Whatever fails between a claim and its attempts hands the jobs back, and counts no attempt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import Job, Ledger, NewJob, open_ledger
from fencepost.core.model.events import Event, NoObservers
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker

from tests.programs import FENCEPOST
from tests.worker.doubles import Acting


@pytest.fixture
def ledger(make_ledger: Callable[[], Ledger]) -> Ledger:
    return make_ledger()


class Planted(Exception):
    """What a test raises on purpose."""


class Refusing(NoObservers):
    """An observer of the core's own kind that fails at the third claim."""

    def __init__(self) -> None:
        self.told = 0

    def job_claimed(self, job: Job) -> None:
        self.told += 1
        if self.told == 3:
            raise Planted


def fail_at_second(events: list[Event]) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        events.append(event)
        if len(events) == 2:
            raise Planted

    return tell


@pytest.mark.parametrize("max_jobs", [20, None], ids=["bounded", "following"])
@pytest.mark.parametrize("where", ["an event is told", "a claim is told"])
def test_a_failure_after_a_claim_leaves_no_job_running_and_counts_no_attempt(
    ledger: Ledger, max_jobs: int | None, where: str
) -> None:
    ledger.enqueue([NewJob(f"job-{number}", "x", effect="act") for number in range(20)])
    told: dict[str, Any] = (
        {"on_event": fail_at_second([])} if where == "an event is told" else {"observers": Refusing()}
    )
    options = WorkerOptions(claimant="w", max_jobs=max_jobs, concurrency=2)
    with pytest.raises(Planted):
        Worker(ledger, {"act": Acting()}, options, **told).run()
    states = {job.state for job in ledger.jobs().jobs}
    assert states <= {"queued", "completed"}
    assert {job.attempts for job in ledger.jobs().jobs if job.state == "queued"} <= {0}


def test_a_worker_that_cannot_start_its_threads_says_what_to_do_and_costs_no_job_an_attempt(
    tmp_path: Path,
) -> None:
    store = str(tmp_path / "jobs.db")
    with open_ledger(store) as ledger:
        ledger.enqueue([NewJob(f"job-{number}", "x") for number in range(10)])
    limited = (
        "import resource, os, sys; resource.setrlimit(resource.RLIMIT_AS, (600 << 20,) * 2); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    for _ in range(4):
        ended = subprocess.run(
            [
                *(sys.executable, "-c", limited, *FENCEPOST, "worker", "--store", store, "--follow"),
                *("--concurrency", "900", "--lease-ms", "1000"),
            ],
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert (ended.returncode, ended.stdout) == (1, b"")
        assert b"lower --concurrency" in ended.stderr
    with open_ledger(store) as ledger:
        assert {(job.state, job.attempts) for job in ledger.jobs().jobs} == {("queued", 0)}
