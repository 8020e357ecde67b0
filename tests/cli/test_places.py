"""What a person names stays where it was named, and is shown, whatever its name holds and whoever looks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.programs import document, fencepost

ONE = b'[{"id": "a", "text": "caf\xc3\xa9"}]'
WANDERING = """
import os
from fencepost.plugins import EffectInfo, hookimpl

os.chdir("/")

@hookimpl
def effect_info():
    return EffectInfo(name="wander", summary="Changes the working folder.")

@hookimpl
def effect_outcome(text):
    return {}
"""


@pytest.fixture
def wandering(tmp_path: Path) -> Path:
    """A working folder with a plugin that leaves it."""
    (tmp_path / "wander.py").write_text(WANDERING)
    (tmp_path / "in.json").write_bytes(ONE)
    return tmp_path


@pytest.mark.parametrize("store", ["jobs.db", "jobs", "sqlite:jobs"])
def test_a_plugin_that_changes_the_working_folder_moves_nothing(wandering: Path, store: str) -> None:
    common = ("--store", store, "--plugin", "wander.py")
    told = document("enqueue", *common, "--effect", "wander", "--input", "in.json", cwd=wandering)
    assert told["store"].endswith(str(wandering / store.removeprefix("sqlite:")))
    done = document("worker", *common, "--effect", "wander", "--health-file", "alive", cwd=wandering)
    assert [event["state"] for event in done["events"]] == ["completed"]
    assert (wandering / "alive").exists()
    shown = document("jobs", "show", "a", "--store", store, cwd=wandering)
    assert shown["job"]["State"] == "completed"


def test_the_configuration_is_read_before_a_plugin_changes_the_working_folder(wandering: Path) -> None:
    (wandering / "fencepost.toml").write_text('store = "jobs.db"\n[queues.default]\nmax_attempts = 7\n')
    document("enqueue", "--plugin", "wander.py", "--effect", "wander", "--input", "in.json", cwd=wandering)
    document("worker", "--plugin", "wander.py", "--effect", "wander", cwd=wandering)
    (job,) = document("jobs", "list", cwd=wandering)["jobs"]
    assert (job["State"], job["MaxAttempts"]) == ("completed", 7)


STRANGE = os.fsdecode(b"caf\xe9.db")
"""A file's name that is no text in UTF-8."""


def test_a_store_whose_name_is_no_text_is_used_and_shown_with_a_replacement(tmp_path: Path) -> None:
    store = tmp_path / STRANGE
    told = document("enqueue", "--store", store, "--input", "-", stdin=ONE)
    assert told["store"] == str(tmp_path / "caf\ufffd.db")
    assert store.exists()
    for command in (["worker"], ["status"], ["queues"], ["doctor"], ["top", "--json"], ["jobs", "show", "a"]):
        ended = fencepost(*command, "--store", store)
        assert (ended.returncode, ended.stderr) == (0, b"")
        json.loads(ended.stdout.decode("utf-8"))


@pytest.mark.parametrize("command", [["jobs", "show", "a", "--text", "--now-ms", "5"], ["status"]])
def test_a_document_is_utf_8_whatever_the_terminal_s_encoding(tmp_path: Path, command: list[str]) -> None:
    store = tmp_path / "jobs.db"
    document("enqueue", "--store", store, "--input", "-", stdin=ONE)
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    ended = fencepost(*command, "--store", store, env=ascii_only)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == fencepost(*command, "--store", store).stdout


@pytest.mark.parametrize("command", [["jobs", "show", "a", "--text"], ["queues"], ["top", "--once"]])
def test_a_terminal_without_a_character_shows_another_instead(tmp_path: Path, command: list[str]) -> None:
    store = str(tmp_path / "caf\u00e9.db")
    document("enqueue", "--store", store, "--input", "-", stdin=ONE)
    with Terminal(*command, "--store", store, env={"PYTHONIOENCODING": "ascii"}) as terminal:
        assert terminal.end() == 0
        assert "?" in terminal.text if command[0] != "queues" else "default" in terminal.text
        assert "Error" not in terminal.text
