"""The shell completes the names of effects, queues, schedules and plugins of the store at hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import NewJob, open_ledger

from tests.cli.inprocess import Program, run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose configuration names a queue and an effect."""
    (tmp_path / "fencepost.toml").write_text('store = "jobs.db"\n[queues.bills]\n[effects.charge]\n')
    (tmp_path / "shout.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What bash would offer at the end of these words; the last one may be begun."""

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_FENCEPOST_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["fencepost", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        ended = run()
        assert ended.err == ""
        return ended.out.split()

    return complete


@pytest.mark.usefixtures("here")
def test_queues_are_those_of_the_configuration_and_of_the_jobs(completed: Any) -> None:
    with open_ledger("jobs.db") as ledger:
        ledger.enqueue([NewJob("a", "x", queue="mail"), NewJob("b", "x", queue="media")])
        ledger.pause("pictures")
    assert completed("jobs", "list", "--queue", "") == ["bills", "default", "mail", "media", "pictures"]
    assert completed("queues", "resume", "p") == ["pictures"]
    assert completed("worker", "--queue", "me") == ["media"]


@pytest.mark.usefixtures("here")
def test_effects_are_those_installed_configured_and_named_by_jobs(completed: Any) -> None:
    with open_ledger("jobs.db") as ledger:
        ledger.enqueue([NewJob("a", "x", effect="letter")])
    offered = completed("enqueue", "--effect", "")
    assert {"charge", "count", "letter", "remote"} <= set(offered)
    assert completed("jobs", "list", "--effect", "le") == ["letter"]


@pytest.mark.usefixtures("here")
def test_schedules_are_those_of_the_ledger(completed: Any) -> None:
    assert run("schedule", "add", "nightly", "--every", "1d", "--text", "x").status == 0
    assert run("schedule", "add", "noon", "--every", "1d", "--text", "x").status == 0
    assert completed("schedule", "remove", "n") == ["nightly", "noon"]
    assert completed("schedule", "remove", "--store", "other.db", "n") == []


@pytest.mark.usefixtures("here")
def test_plugins_are_those_that_can_be_named_or_blocked(completed: Any) -> None:
    assert completed("worker", "--plugin", "") == ["log", "shout.py", "timing"]
    assert {"all", "count", "remote"} <= set(completed("worker", "--no-plugin", ""))


@pytest.mark.parametrize("store", ["nowhere.db", "mysql://x", "postgresql://nowhere.example/x"])
def test_a_store_that_cannot_be_read_completes_nothing_and_is_not_made(
    here: Path, completed: Any, store: str
) -> None:
    assert completed("jobs", "list", "--store", store, "--queue", "") == ["bills", "default"]
    assert not (here / "nowhere.db").exists()


def test_a_configuration_that_cannot_be_read_is_passed_over(here: Path, completed: Any) -> None:
    (here / "fencepost.toml").write_text("not toml")
    assert completed("jobs", "list", "--queue", "") == ["default"]


def test_no_plugin_is_imported_for_a_completion(
    tmp_path: Path, completed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    information = tmp_path / "site" / "spy-1.dist-info"
    information.mkdir(parents=True)
    (tmp_path / "site" / "spy_of_completion.py").write_text("raise SystemExit('imported')")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: spy\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[fencepost]\nspy = spy_of_completion\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert "spy" in completed("enqueue", "--effect", "s")
    assert "spy_of_completion" not in sys.modules


def test_names_of_a_folder_s_jobs_are_offered_too(tmp_path: Path, completed: Any) -> None:
    program = Program(str(tmp_path / "folder"))
    program.enqueue("a", queue="mail")
    assert completed("jobs", "list", "--store", program.store, "--queue", "m") == ["mail"]
