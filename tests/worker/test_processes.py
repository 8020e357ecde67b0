"""Workers and enqueuers as processes of their own over one store: nothing is lost, nothing is done twice."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fencepost.core import NewJob, open_ledger
from fencepost.core.ledgers.postgres.address import parse_address

from tests.programs import FENCEPOST, catches_sigterm, document, fencepost, python_all, refused
from tests.waiting import until

LIMIT_S = 120.0

ENQUEUE = """
import sys
from fencepost.core import NewJob, open_ledger
store, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_ledger(store) as ledger:
    for n in range(count):
        ledger.enqueue([NewJob(f"{name}-{n}", f"text {n}"), NewJob(f"shared-{n}", "the same")])
"""


@pytest.fixture(params=["directory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        name = request.getfixturevalue("postgres_stores")(tmp_path).name
        assert isinstance(name, str)
        return name
    return str(tmp_path / {"directory": "store", "sqlite": "store.db"}[request.param])


def fill(store: str, count: int, **options: Any) -> None:
    with open_ledger(store) as ledger:
        ledger.enqueue([NewJob(f"job-{n}", f"text {n}", **options) for n in range(count)])


STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def nothing_runs_on() -> Iterator[None]:
    """What a test that failed has left running would work on the store of the next one."""
    yield
    for process in STARTED:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    STARTED.clear()


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    return popen(*FENCEPOST, *map(str, arguments))


def popen(*command: str) -> subprocess.Popen[bytes]:
    STARTED.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return STARTED[-1]


def end(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out.decode(), err.decode()


def test_six_workers_complete_300_jobs_each_exactly_once(store: str) -> None:
    fill(store, 300)
    workers = [start("worker", "--store", store, "--max-jobs", 1000) for _ in range(6)]
    seen: Counter[str] = Counter()
    for worker in workers:
        status, out, err = end(worker)
        assert (status, err) == (0, "")
        events = json.loads(out)["events"]
        assert all(event["state"] == "completed" and event["version"] == 1 for event in events)
        seen.update(event["id"] for event in events)
    assert seen == Counter(f"job-{n}" for n in range(300))
    with open_ledger(store) as ledger:
        assert ledger.counts()["completed"] == 300
        assert len(ledger.receipts(seen)) == 300


def test_two_enqueuers_and_two_workers_at_once_lose_nothing(store: str) -> None:
    followers = [start("worker", "--store", store, "--follow") for _ in range(2)]
    for ended in python_all(ENQUEUE, [[store, "one", "40"], [store, "two", "40"]]):
        assert (ended.returncode, ended.stderr) == (0, b"")
    with open_ledger(store) as ledger:
        until(lambda: ledger.counts()["completed"] == 120)
    seen: Counter[str] = Counter()
    for follower in followers:
        until(lambda: catches_sigterm(follower))  # noqa: B023 - called at once
        follower.send_signal(signal.SIGTERM)
        status, out, _ = end(follower)
        assert status == 0
        seen.update(json.loads(line)["id"] for line in out.splitlines())
    assert seen == Counter(f"{name}-{n}" for name in ("one", "two", "shared") for n in range(40))


@contextmanager
def locked(store: str) -> Iterator[None]:
    """Nobody else can change the ledger meanwhile."""
    if "://" in store:
        address = parse_address(store)
        with psycopg.connect(address.conninfo) as connection:
            connection.execute(
                f"LOCK TABLE {address.schema}.fencepost_meta IN ACCESS EXCLUSIVE MODE".encode()
            )
            yield
    elif store.endswith(".db"):
        with closing(sqlite3.connect(store, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
    else:
        with open(Path(store) / "ledger.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


IMPATIENT = """
import sys
from fencepost.core.cli import main
from fencepost.core.cli.worker import signals
signals.OVERDUE_S = 0.2
main(sys.argv[1:])
"""


GATED = """
import pathlib, time
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo(name="gated", summary="Waits for a file, and makes another one.")

@hookimpl
def effect_apply():
    while not pathlib.Path(__file__).with_name("go").exists():
        time.sleep(0.01)
    pathlib.Path(__file__).with_name("done").touch()
    return {}
"""


def test_a_ledger_that_is_locked_for_good_does_not_keep_a_worker_from_stopping(
    store: str, tmp_path: Path
) -> None:
    fill(store, 1, effect="gated")
    plugin = tmp_path / "gated.py"
    plugin.write_text(GATED)
    arguments = ("worker", "--store", store, "--follow", "--grace", "3", "--plugin", str(plugin))
    worker = popen(sys.executable, "-c", IMPATIENT, *arguments)
    with open_ledger(store) as ledger:
        until(lambda: ledger.counts()["running"] == 1 or worker.poll() is not None)
    assert worker.poll() is None, worker.communicate()[1]
    with locked(store):
        (tmp_path / "go").touch()
        until((tmp_path / "done").exists)
        worker.send_signal(signal.SIGTERM)
        status, _, err = end(worker)
    given_up = "the worker has not ended in 0.2 s" in err
    assert status == int(given_up), err
    if store.endswith(".db"):  # which cannot be closed while a thread waits for its lock
        assert given_up


# -- the command --


def test_a_following_worker_whose_reader_has_gone_stops_in_order_and_leaves_no_job_running(
    store: str,
) -> None:
    worker = start("worker", "--store", store, "--follow")
    assert worker.stdout is not None
    worker.stdout.close()
    fill(store, 20)
    assert worker.wait(LIMIT_S) == 1
    assert worker.stderr is not None
    assert worker.stderr.read() == b""
    with open_ledger(store) as ledger:
        assert ledger.counts()["running"] == 0
        assert ledger.counts()["completed"] >= 1


def test_a_following_worker_prints_an_event_a_line_and_ends_well_on_sigterm(store: str) -> None:
    fill(store, 3)
    worker = start("worker", "--store", store, "--follow", "--concurrency", "2")
    with open_ledger(store) as ledger:
        until(lambda: ledger.counts()["completed"] == 3)
    worker.send_signal(signal.SIGTERM)
    status, out, _ = end(worker)
    events = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert sorted(event["id"] for event in events) == ["job-0", "job-1", "job-2"]
    assert all(set(event) == {"id", "version", "state", "reused_effect"} for event in events)


SLOW = """
import time
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo("slow", "takes its time", delivery="local")

@hookimpl
def effect_apply(request):
    open(request.json()["begun"], "w").close()
    while True:
        time.sleep(0.02)
"""


def slow_worker(store: str, tmp_path: Path, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
    (tmp_path / "slow.py").write_text(SLOW)
    begun = tmp_path / "begun"
    with open_ledger(store) as ledger:
        ledger.enqueue([NewJob("a", json.dumps({"begun": str(begun)}), effect="slow")])
    worker = start(
        *(
            "worker",
            "--store",
            store,
            "--follow",
            "--effect",
            "slow",
            "--plugin",
            tmp_path / "slow.py",
            *options,
        )
    )
    until(begun.exists)
    return worker, begun


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_first_signal_waits_for_the_grace_and_then_leaves_the_lease_to_lapse(
    store: str, tmp_path: Path, number: int
) -> None:
    worker, _ = slow_worker(store, tmp_path, "--grace", "0.1", "--lease-ms", "60000")
    worker.send_signal(number)
    status, out, _ = end(worker)
    assert (status, out) == (0, "")
    with open_ledger(store) as ledger:
        job = ledger.get_job("a")
    assert job is not None
    assert (job.state, job.attempts) == ("running", 1), "nothing is taken back: its lease lapses"


def test_a_second_signal_ends_it_at_once(store: str, tmp_path: Path) -> None:
    worker, _ = slow_worker(store, tmp_path, "--grace", "600")

    def signalled_again() -> bool:
        # Two signals that arrive together are one to the receiver, so that one more may be needed.
        worker.send_signal(signal.SIGTERM)
        return worker.poll() is not None

    worker.send_signal(signal.SIGTERM)
    until(signalled_again)
    assert end(worker)[0] == 1


def test_a_worker_stops_in_order_as_process_1_of_a_container(store: str) -> None:
    if os.geteuid() != 0:
        command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
    else:
        command = ["unshare", "--pid", "--fork", "--kill-child"]
    fill(store, 1)
    script = (
        "import os, sys; from fencepost.core.cli import main; assert os.getpid() == 1; "
        f"main(['worker', '--store', {store!r}, '--follow'])"
    )
    worker = popen(*command, sys.executable, "-c", script)
    with open_ledger(store) as ledger:
        until(lambda: ledger.counts()["completed"] == 1 or worker.poll() is not None)
    assert worker.poll() is None, worker.communicate()[1]
    child = int(Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()[0])
    os.kill(child, signal.SIGTERM)
    status, out, _ = end(worker)
    assert (status, json.loads(out)["id"]) == (0, "job-0")


def test_health_is_touched_when_the_worker_gets_on_and_logs_can_be_json(store: str, tmp_path: Path) -> None:
    fill(store, 1)
    health = tmp_path / "healthy"
    ended = fencepost(
        *(
            "worker",
            "--store",
            store,
            "--follow",
            "--idle-exit",
            "0",
            "--log-format",
            "json",
            "--health-file",
            health,
        )
    )
    assert ended.returncode == 0
    assert health.exists()
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert {"at", "level", "logger", "message"} <= set(lines[-1])
    assert "the worker stops" in lines[-1]["message"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--follow", "--crash-after", "claim"), "--crash-after is for bounded runs"),
        (("--idle-exit", "1"), "--idle-exit goes with --follow"),
        (("--effect", "absent"), "there is no effect 'absent'"),
        (("--queue", "No"), "must match"),
        (("--plugin", "no_such_module_anywhere"), "no_such_module_anywhere"),
        (("--config", "/no/such/file.toml"), "/no/such/file.toml"),
        (("--now-ms", "99999999999999999999"), "--now-ms"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
@pytest.mark.parametrize(
    "name", ["store", "store.db", "postgresql://127.0.0.1:1/absent"], ids=["directory", "sqlite", "postgres"]
)
def test_wrong_usage_says_what_is_wrong_and_touches_no_store(
    tmp_path: Path, name: str, options: tuple[str, ...], said: str
) -> None:
    store = name if name.startswith("postgresql:") else str(tmp_path / name)
    assert said in refused("worker", "--store", store, *options), "and not that there is no such server"
    assert not list(tmp_path.iterdir())


FAILING = """
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo("fails", "always fails", delivery="local")

@hookimpl
def effect_apply(request):
    raise ValueError("no")
"""


def test_an_effect_that_fails_is_an_event_and_no_failure_of_the_program(store: str, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILING)
    fill(store, 1, effect="fails")
    printed = document(
        *(
            "worker",
            "--store",
            store,
            "--plugin",
            tmp_path / "fails.py",
            "--max-attempts",
            "1",
            "--now-ms",
            "5",
        )
    )
    (event,) = printed["events"]
    assert (event["state"], event["error"].splitlines()[0]) == ("dead", "ValueError: no")
    (job,) = document("status", "--store", store)["jobs"]
    assert (job["State"], job["DiedAt"], job["LastError"].splitlines()[0]) == ("dead", 5, "ValueError: no")


@pytest.mark.parametrize("point", ["claim", "effect"])
def test_a_crash_is_injected_where_it_is_asked_for(store: str, point: str) -> None:
    fill(store, 2)
    ended = fencepost(
        "worker", "--store", store, "--now-ms", 100, "--lease-ms", 10, "--crash-after", point, "--max-jobs", 9
    )
    assert (ended.returncode, ended.stderr) == (86, b"")
    assert json.loads(ended.stdout) == {"crash_after": point, "id": "job-0", "version": 1}
    printed = document("worker", "--store", store, "--now-ms", 110, "--lease-ms", 10, "--max-jobs", 9)
    assert [(event["id"], event["version"], event["reused_effect"]) for event in printed["events"]] == [
        ("job-0", 3, point == "effect"),
        ("job-1", 1, False),
    ]


def test_a_worker_on_an_absent_store_makes_an_empty_one(store: str) -> None:
    assert document("worker", "--store", store)["events"] == []
    assert document("status", "--store", store)["jobs"] == []
