"""Wherever stdout is no terminal, every command prints one JSON document without being asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inprocess import Program, run
from tests.docs.commands_reference import Command, walk

ALWAYS = {"enqueue", "worker", "status", "demo", "migrate", "receiver"}
"""Documents and nothing else, on a terminal too: whoever runs these reads them with a program."""
ONLY_GROUPS = {"jobs", "dead", "schedule"}
"""Do nothing without the name of a command."""
WITHOUT_STORE = {"plugins", "plugins doctor", "plugins check"}
ELSEWHERE = {"receiver check", "schedule apply"}
"""The one needs a receiver (tests/effects/test_receiver_check.py), the other a file (test_schedule_calendar.py)."""

ARGUMENTS: dict[str, list[str]] = {
    "jobs list": [],
    "jobs show": ["queued"],
    "jobs reschedule": ["queued", "--priority", "5"],
    "jobs cancel": ["queued"],
    "jobs resolve": ["held", "--fail"],
    "dead list": [],
    "dead redrive": ["dead"],
    "dead purge": ["dead"],
    "top": [],
    "queues": [],
    "queues pause": ["mail"],
    "queues resume": ["mail"],
    "schedule add": ["nightly", "--every", "@every 1d", "--text", "x"],
    "schedule list": [],
    "schedule pause": ["hourly"],
    "schedule resume": ["hourly"],
    "schedule preview": ["hourly"],
    "schedule remove": ["hourly"],
    "schedule run": [],
    "sweep": [],
    "audit": [],
    "doctor": [],
    "copy": [],
    "plugins": [],
    "plugins doctor": [],
    "plugins check": ["count", "--point", "pure"],
}


def drawing() -> list[Command]:
    """The commands that draw for people, by their option ``--json``."""
    return [one for one in walk() if any(name.startswith("--json") for name, _, _ in one.parameters)]


def named(command: Command) -> str:
    return command.name.removeprefix("fencepost ")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A store in which each of the commands finds something."""
    program = Program(str(tmp_path / "jobs.db"))
    program.enqueue("held")
    program.hold("held")
    program.enqueue("dead", "queued")
    program.bury("dead")
    program.enqueue("letter", queue="mail")
    program("schedule", "add", "hourly", "--every", "@every 1h", "--text", "x", "--now-ms", "0")
    return program


def test_every_command_is_known_to_draw_or_to_print_documents_always() -> None:
    names = {named(one) for one in walk()} - {"fencepost"}
    assert {named(one) for one in drawing()} == ARGUMENTS.keys() | ELSEWHERE
    assert names - {named(one) for one in drawing()} == ALWAYS | ONLY_GROUPS


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_draws_on_a_terminal_prints_a_document_everywhere_else(
    program: Program, tmp_path: Path, name: str
) -> None:
    store = ["--store", program.store, "--now-ms", "0"]
    if name in WITHOUT_STORE:
        store = []
    elif name == "copy":
        store = ["--from", program.store, "--to", str(tmp_path / "other.db"), "--now-ms", "0"]
    ended = run(*name.split(), *ARGUMENTS[name], *store)
    assert ended.err == ""
    assert json.loads(ended.out)["schema_version"] == 1
    assert ended.status == (1 if name == "doctor" else 0)  # the held job is a finding
    assert run(*name.split(), *ARGUMENTS[name], *store, "--json").status in (0, 1)
