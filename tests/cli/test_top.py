"""``top`` on a pseudo-terminal: what it shows, at two widths, and how it leaves the terminal."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.inprocess import Program
from tests.cli.terminal import ENTER, FENCEPOST, LEAVE, SHELL, Terminal

NOW_MS = 1_796_000_000_000


@pytest.fixture
def store(program: Program) -> str:
    """A ledger with jobs in most states, as of NOW_MS."""
    program.enqueue("done-1", now_ms=NOW_MS - 90_000)
    program.complete(now_ms=NOW_MS - 80_000)
    program.enqueue("bad-1", "bad-2", queue="mail", now_ms=NOW_MS - 70_000)
    program.bury("bad-1", error="TimeoutError: read timed out", now_ms=NOW_MS - 60_000)
    program.bury("bad-2", error="ValueError: no such address\nlines", now_ms=NOW_MS - 5_000)
    program.enqueue("busy-1", queue="mail", now_ms=NOW_MS - 4_000)
    program.claim(now_ms=NOW_MS - 3_000, lease_ms=15_000)
    program.enqueue("waiting-1", "waiting-2", now_ms=NOW_MS - 2_000)
    return program.store


def top(store: str, *arguments: str, **options: int) -> Terminal:
    return Terminal("top", "--store", store, "--now-ms", str(NOW_MS), *arguments, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [80, 200])
def test_it_shows_queues_running_jobs_and_the_latest_deaths(store: str, columns: int) -> None:
    with top(store, columns=columns) as terminal:
        terminal.until_shown("q quits")
        shown = terminal.text
        assert "2 queued  1 running  0 held  2 dead  1 done" in shown
        queue = next(line for line in shown.splitlines() if line.startswith("mail"))
        assert queue.split()[1:7] == ["0", "0", "1", "0", "2", "0"]
        running = next(line for line in shown.splitlines() if line.startswith("busy-1"))
        assert "12 s" in running
        deaths = [line for line in shown.splitlines() if line.startswith("bad-")]
        assert [line.split()[0] for line in deaths] == ["bad-2", "bad-1"]
        assert "ValueError: no such address" in deaths[0]
        assert all(len(line) <= columns for line in shown.splitlines())
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.left_as_found


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A store of one kind: how the terminal is treated does not depend on the ledger."""
    program = Program(str(tmp_path / "jobs.db"))
    program.enqueue("a", now_ms=NOW_MS)
    return program.store


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(small: str, number: signal.Signals) -> None:
    with top(small) as terminal:
        terminal.until_shown("q quits")
        terminal.process.send_signal(number)
        assert terminal.end() == 0
        assert terminal.left_as_found
        assert b"Traceback" not in terminal.output


def test_ctrl_c_ends_it_and_the_terminal_is_as_it_was(small: str) -> None:
    with top(small) as terminal:
        terminal.until_shown("q quits")
        terminal.press("\x03")
        assert terminal.end() == 0
        assert terminal.left_as_found


def test_ctrl_z_gives_the_terminal_back_until_the_shell_brings_it_to_the_front_again(small: str) -> None:
    shell = (FENCEPOST[0], "-c", SHELL, *FENCEPOST)
    with Terminal("top", "--store", small, program=shell) as terminal:
        terminal.until_shown("q quits")
        terminal.press("\x1a")
        terminal.until(lambda: b"stopped" in terminal.output, "the shell")
        assert terminal.left_as_found
        terminal.press("fg\n")
        terminal.until(lambda: terminal.output.count(ENTER) == 2, "the second screen")
        terminal.until_shown("q quits")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.output.count(LEAVE) == 2
        assert terminal.left_as_found


def test_an_error_of_the_program_itself_leaves_the_terminal_as_it_was(small: str) -> None:
    script = (
        "import itertools, sys; from fencepost.core.cli import main; from fencepost.core.cli.top import view\n"
        "good, looks = view.draw, itertools.count()\n"
        "def draw(*a, **k):\n"
        "    if next(looks) == 1:\n"
        "        raise RuntimeError('planted')\n"
        "    return good(*a, **k)\n"
        "view.draw = draw\n"
        "main(sys.argv[1:])"
    )
    arguments = ("top", "--store", small, "--interval", "0.1")
    with Terminal(*arguments, program=(FENCEPOST[0], "-c", script)) as terminal:
        assert terminal.end() == 1
        assert terminal.left_as_found
        assert b"planted" in terminal.output[terminal.output.rfind(LEAVE) :]


def test_it_follows_the_size_of_the_window(small: str) -> None:
    with top(small, columns=80, lines=24) as terminal:
        terminal.until_shown("q quits")
        terminal.resize(120, 30)
        terminal.until(
            lambda: terminal.screen.display[29].startswith("q quits"), "the foot of the larger screen"
        )
        terminal.resize(60, 12)
        terminal.until(
            lambda: terminal.screen.display[11].startswith("q quits"), "the foot of the smaller screen"
        )
        terminal.press("q")
        assert terminal.end() == 0


def test_it_shows_what_has_changed_since(small: str) -> None:
    with top(small, "--interval", "0.1") as terminal:
        terminal.until_shown("1 queued  0 running")
        Program(small).claim(now_ms=NOW_MS)
        terminal.until_shown("0 queued  1 running")
        terminal.press("q")
        assert terminal.end() == 0


def test_a_ledger_that_is_away_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "jobs-data"
    Program(str(folder)).enqueue("a")
    jobs = folder / "jobs.json"
    good = jobs.read_bytes()
    with Terminal("top", "--store", str(folder), "--interval", "0.1", columns=200) as terminal:
        terminal.until_shown("1 queued")
        _replace(jobs, b"[")
        terminal.until_shown("cannot be read, trying again")
        _replace(jobs, good)
        terminal.until(lambda: "cannot be read" not in terminal.text, "the ledger")
        terminal.press("q")
        assert terminal.end() == 0


def _replace(file: Path, data: bytes) -> None:
    other = file.with_name(".other")
    other.write_bytes(data)
    os.replace(other, file)


def test_a_ledger_that_cannot_be_read_at_all_never_takes_the_terminal(tmp_path: Path) -> None:
    with Terminal("top", "--store", str(tmp_path / "nix.db")) as terminal:
        assert terminal.end() == 1
        assert "there is no ledger of that name" in terminal.text.replace("\n", "")
        assert ENTER not in terminal.output


def test_one_look_can_be_left_on_the_screen(small: str) -> None:
    with top(small, "--once") as terminal:
        assert terminal.end() == 0
        assert "1 queued" in terminal.text
        assert ENTER not in terminal.output


def test_where_nobody_looks_it_is_one_document(program: Program) -> None:
    program.enqueue("a", "b", queue="mail")
    program.bury("a")
    found = program("top", "--now-ms", "5")
    assert [queue["queue"] for queue in found["queues"]] == ["mail"]
    assert found["queues"][0]["counts"]["dead"] == 1
    assert [job["ID"] for job in found["latest_deaths"]] == ["a"]
    assert found["running"] == []
