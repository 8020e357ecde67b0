"""A worker as a process: its stdout, its log, its children, and how it ends whatever an effect does to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import NewJob, open_ledger

from tests.programs import FENCEPOST

LIMIT_S = 30.0

HEAD = """
import ctypes, logging, multiprocessing, os, pathlib, signal, subprocess, sys, threading, time, warnings
from fencepost.plugins import EffectInfo, hookimpl
here = pathlib.Path(__file__).parent

@hookimpl
def effect_info():
    return EffectInfo("act", "for tests", delivery="local")
"""
IMPATIENT = """
import sys
from fencepost.core.cli import main
from fencepost.core.cli.worker import signals
signals.OVERDUE_S = 0.2
main(sys.argv[1:])
"""
BOTH = pytest.mark.parametrize("follow", [False, True], ids=["bounded", "following"])


class Site:
    """A store, a plugin of one effect ``act``, and workers over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = str(folder / "jobs.db")
        self.started: list[subprocess.Popen[bytes]] = []

    def plugin(self, source: str) -> None:
        (self.folder / "acting.py").write_text(HEAD + source)

    def fill(self, *ids: str) -> None:
        with open_ledger(self.store) as ledger:
            ledger.enqueue([NewJob(id, f"text of {id}", effect="act") for id in ids])

    def states(self) -> dict[str, str]:
        with open_ledger(self.store) as ledger:
            return {job.id: job.state for job in ledger.jobs().jobs}

    def start(
        self, *options: str, follow: bool = True, impatient: bool = False, stdout: Any = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-c", IMPATIENT] if impatient else list(FENCEPOST)
        command = [
            "worker",
            "--store",
            self.store,
            "--plugin",
            str(self.folder / "acting.py"),
            "--effect",
            "act",
        ]
        command += ["--follow"] if follow else ["--max-jobs", "9"]
        self.started.append(
            subprocess.Popen([*program, *command, *options], stdout=stdout, stderr=subprocess.PIPE)
        )
        return self.started[-1]

    def work(self, *options: str, follow: bool, **how: Any) -> tuple[int, list[Any], str]:
        """The exit status, the events and stderr of a worker that ends by itself."""
        ending = ("--idle-exit", "0") if follow else ()
        status, out, err = ended(self.start(*options, *ending, follow=follow, **how))
        events = [json.loads(line) for line in out.splitlines()] if follow else json.loads(out)["events"]
        return status, events, err


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, (out or b"").decode(), err.decode()


def until(path: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not path.exists():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


# -- stdout is for documents alone --


@BOTH
@pytest.mark.parametrize(
    "write",
    [
        "print('stray')",
        "os.write(1, b'stray')",
        "subprocess.run(['echo', 'stray'], check=True)",
        "os.system('echo stray')",
        "libc = ctypes.CDLL(None); libc.puts(b'stray'); libc.fflush(None)",
        "sys.__stdout__.write('stray'); sys.__stdout__.flush()",
    ],
)
def test_whatever_an_effect_writes_to_stdout_goes_to_stderr(site: Site, follow: bool, write: str) -> None:
    site.plugin(f"@hookimpl\ndef effect_apply(request):\n    {write}\n    return {{}}\n")
    site.fill("a", "b")
    status, events, err = site.work(follow=follow)
    assert status == 0
    assert [(event["id"], event["state"]) for event in events] == [("a", "completed"), ("b", "completed")]
    assert err.count("stray") == 2


def test_a_plugin_that_writes_while_it_is_loaded_or_closed_writes_to_stderr(site: Site) -> None:
    site.plugin(
        "os.write(1, b'loaded ')\n@hookimpl\ndef effect_close():\n    os.write(1, b'closed ')\n"
        "@hookimpl\ndef effect_apply(request):\n    return {}\n"
    )
    site.fill("a")
    status, events, err = site.work(follow=False)
    assert (status, [event["id"] for event in events], err) == (0, ["a"], "loaded closed ")


def test_a_child_that_lives_on_does_not_keep_the_reader_of_the_documents(site: Site) -> None:
    site.plugin(
        "@hookimpl\ndef effect_apply(request):\n    pid = os.fork()\n    if pid == 0:\n        time.sleep(600)\n"
        "    (here / 'child').write_text(str(pid))\n    return {}\n"
    )
    site.fill("a")
    worker = site.start(follow=False, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    try:
        document = json.loads(worker.stdout.read())  # to the end: nobody else has it open
    finally:
        os.kill(int((site.folder / "child").read_text()), signal.SIGKILL)
    assert document["events"][0]["state"] == "completed"


@BOTH
def test_a_full_disk_behind_stdout_leaves_no_claim_running(site: Site, follow: bool) -> None:
    site.plugin("@hookimpl\ndef effect_apply(request):\n    return {}\n")
    site.fill(*(f"job-{number}" for number in range(50)))
    with open("/dev/full", "wb") as full:
        status, _, err = ended(site.start(follow=follow, stdout=full))
    assert status == 1
    assert "stdout cannot be written" in err
    assert "running" not in site.states().values()


# -- the log --

TALKING = """
@hookimpl
def effect_apply(request):
    print_nothing = logging.getLogger("some.library")
    logging.getLogger("some.library").warning("from a library %s", "of the effect")
    request.log.info("from request.log")
    warnings.warn("from the warnings module")
    logging.getLogger("some.library").error("a wrong format %d", "x")
    helper = threading.Thread(target=lambda: request.log.info("from a thread"))
    helper.start(); helper.join()
    dying = threading.Thread(target=lambda: 1 / 0)
    dying.start(); dying.join()
    return {}
"""


@BOTH
def test_every_record_of_the_process_is_one_json_object_and_those_of_an_attempt_say_whose(
    site: Site, follow: bool
) -> None:
    site.plugin(TALKING)
    site.fill("a")
    status, _, err = site.work("--log-format", "json", follow=follow)
    records = [json.loads(line) for line in err.splitlines()]
    assert status == 0
    of_attempt = {"id": "a", "effect": "act", "queue": "default", "fence": 1, "attempt": 1}
    told = {record["message"]: {name: record.get(name) for name in of_attempt} for record in records}
    assert told["from a library of the effect"] == of_attempt
    assert told["from request.log"] == of_attempt
    assert any("from the warnings module" in message and told[message] == of_attempt for message in told)
    assert any(message.startswith("a wrong format %d (its arguments do not fit") for message in told)
    assert (told["from a thread"]["id"], told["from a thread"]["fence"]) == ("a", 1)
    (died,) = [record for record in records if "has ended with an error" in record["message"]]
    assert "ZeroDivisionError" in died["traceback"]


@BOTH
def test_text_lines_say_whose_attempt_too(site: Site, follow: bool) -> None:
    site.plugin(TALKING)
    site.fill("a")
    _, _, err = site.work(follow=follow)
    marks = "[id=a effect=act queue=default fence=1 attempt=1]"
    assert f"WARNING from a library of the effect {marks}" in err
    assert f"INFO    from request.log {marks}" in err


@BOTH
@pytest.mark.parametrize(
    ("level", "shown"), [("debug", "DIWE"), ("info", "IWE"), ("warning", "WE"), ("error", "E")]
)
def test_the_level_of_the_log_is_the_same_bounded_or_not(
    site: Site, follow: bool, level: str, shown: str
) -> None:
    site.plugin(
        "@hookimpl\ndef effect_apply(request):\n"
        "    for name in ('debug', 'info', 'warning', 'error'): getattr(logging.getLogger('x'), name)('said')\n"
        "    return {}\n"
    )
    site.fill("a")
    _, _, err = site.work("--log-format", "json", "--log-level", level, follow=follow)
    records = [json.loads(line) for line in err.splitlines()]
    assert "".join(record["level"][0].upper() for record in records if record["logger"] == "x") == shown


def test_what_the_command_warns_of_is_a_record_too(site: Site) -> None:
    site.plugin("@hookimpl\ndef effect_apply(request):\n    return {}\n")
    (site.folder / "fencepost.toml").write_text("[effects.absent]\nx = 1\n")
    status, _, err = site.work(
        "--log-format", "json", "--config", str(site.folder / "fencepost.toml"), follow=False
    )
    (record,) = [json.loads(line) for line in err.splitlines()]
    assert (status, record["level"]) == (0, "warning")
    assert "no effect of that name is installed here" in record["message"]


# -- children --


@BOTH
@pytest.mark.parametrize(
    "fork",
    [
        "child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,))\n"
        "    child.start(); child.terminate(); child.join(); status = child.exitcode",
        "pid = os.fork()\n    if pid == 0: time.sleep(600)\n"
        "    os.kill(pid, signal.SIGTERM); status = -os.waitpid(pid, 0)[1]",
    ],
    ids=["multiprocessing", "os.fork"],
)
def test_a_forked_child_dies_of_sigterm_like_any_process(site: Site, follow: bool, fork: str) -> None:
    site.plugin(f"@hookimpl\ndef effect_apply(request):\n    {fork}\n    return {{'status': status}}\n")
    site.fill("a")
    status, (event,), err = site.work("--log-level", "warning", follow=follow)
    assert (status, event["state"], err) == (0, "completed", "")
    with open_ledger(site.store) as ledger:
        assert ledger.receipts(["a"])["a"].outcome == {"status": -signal.SIGTERM}


@BOTH
@pytest.mark.parametrize("leave", ["return {}", "sys.exit(3)", "raise ValueError", "os._exit(0)"])
def test_a_forked_child_that_leaves_the_effect_is_no_second_worker(
    site: Site, follow: bool, leave: str
) -> None:
    site.plugin(
        f"@hookimpl\ndef effect_apply(request):\n    pid = os.fork()\n    if pid == 0:\n        {leave}\n"
        "    os.waitpid(pid, 0)\n    return {'by': os.getpid()}\n"
    )
    site.fill("a", "b", "c")
    status, events, _ = site.work(follow=follow)
    assert status == 0
    assert [(event["id"], event["state"]) for event in events] == [(id, "completed") for id in "abc"]


# -- the end --


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("where", ["while it is loaded", "while it is configured"])
def test_a_signal_before_the_worker_has_begun_ends_it_in_order_and_claims_nothing(
    site: Site, number: int, where: str
) -> None:
    waits = "(here / 'begun').touch()\n{0}while not (here / 'go').exists(): time.sleep(0.01)\n"
    load, configure = waits.format(""), "@hookimpl\ndef effect_configure():\n    " + waits.format("    ")
    site.plugin(
        (load if where == "while it is loaded" else configure)
        + "@hookimpl\ndef effect_apply(request):\n    return {}\n"
    )
    site.fill("a")
    worker = site.start("--log-level", "warning")
    until(site.folder / "begun")
    worker.send_signal(number)
    (site.folder / "go").touch()
    assert ended(worker) == (0, "", "")
    assert site.states() == {"a": "queued"}


def test_a_plugin_that_hangs_while_it_is_loaded_does_not_keep_the_worker_from_ending(site: Site) -> None:
    site.plugin("(here / 'begun').touch()\nwhile True: time.sleep(0.01)\n")
    worker = site.start(impatient=True)
    until(site.folder / "begun")
    worker.send_signal(signal.SIGTERM)
    status, out, err = ended(worker)
    assert (status, out) == (1, "")
    assert "does not let it start" in err


@BOTH
@pytest.mark.parametrize(
    ("hang", "said"),
    [
        ("@hookimpl\ndef effect_close():\n    time.sleep(600)\n", "the effect_close of an effect"),
        ("import atexit\natexit.register(time.sleep, 600)\n", "a function of atexit"),
        ("threading.Thread(target=time.sleep, args=(600,)).start()\n", "a thread that an effect has started"),
    ],
    ids=["effect_close", "atexit", "a thread"],
)
def test_what_hangs_once_the_work_is_done_keeps_no_worker(
    site: Site, follow: bool, hang: str, said: str
) -> None:
    site.plugin(hang + "@hookimpl\ndef effect_apply(request):\n    return {}\n")
    site.fill("a")
    status, (event,), err = site.work(follow=follow, impatient=True)
    assert (status, event["state"]) == (1, "completed"), "what was done is told all the same"
    assert said in err
    assert site.states() == {"a": "completed"}
