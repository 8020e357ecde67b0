"""Help and wrong usage: every command has an example that it understands, and an error names the right usage."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer
from fencepost.core.cli.app import Commands, app

from tests.cli.inprocess import refused, run
from tests.docs.commands_reference import Command, walk

COMMANDS = list(walk())
DOING = [command for command in COMMANDS if not command.group or command.examples]


def named(command: Command) -> str:
    return command.name


@pytest.mark.parametrize("command", DOING, ids=named)
def test_every_command_has_an_example_and_understands_it(command: Command) -> None:
    assert command.examples, "its help needs a line `Example: fencepost …`"
    for example in command.examples:
        # What the shell does with the output is not the program's business.
        program, *arguments = shlex.split(example.partition(" > ")[0])
        assert (program, example.startswith(command.name)) == ("fencepost", True)
        assert parsed(arguments) == command.name


def parsed(arguments: list[str]) -> str:
    """Let the program parse these arguments, without running anything; the command that they name."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("fencepost", arguments)
    while rest := [*context._protected_args, *context.args]:
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    path: str = context.command_path
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_help_says_what_the_command_does_in_a_sentence(command: Command) -> None:
    ended = run(*command.name.split()[1:], "--help")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: {command.name} ")
    assert run(*command.name.split()[1:], "-h").out == ended.out
    first = command.text.split("\n\n")[0]
    assert first[0].isupper()
    assert first.endswith(".")


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_an_option_that_there_is_not_is_refused_with_the_right_usage(command: Command) -> None:
    said = refused(*command.name.split()[1:], "--no-such-option")
    assert f"Usage: {command.name} " in said
    assert f"Try '{command.name} -h'" in said
    assert "--no-such-option" in said


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.group], ids=named)
def test_a_command_that_there_is_not_is_refused_with_the_right_usage(command: Command) -> None:
    said = refused(*command.name.split()[1:], "no-such-command")
    assert f"Usage: {command.name} " in said
    assert "No such command 'no-such-command'" in said


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["job", "list"], "Did you mean 'jobs'"),
        (["jobs", "shwo", "a"], "Did you mean 'show'"),
        (["jobs", "list", "--stat", "dead"], "--state"),
        (["queues", "puase", "mail"], "Did you mean 'pause'"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest_one(arguments: list[str], nearest: str) -> None:
    assert nearest in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jobs", "show"], "Missing argument 'ID'"),
        (["jobs", "list", "--limit", "0"], "--limit"),
        (["jobs", "list", "--limit", "many"], "--limit"),
        (["jobs", "list", "--state", "lost"], "'queued', 'running', 'completed', 'dead', 'held'"),
        (["jobs", "list", "--now-ms", "-2"], "--now-ms"),
        (["copy", "--from", "a"], "Missing option '--to'"),
        (["jobs", "list", "--queue", "Mail", "--store", "{store}"], "queue 'Mail': must match"),
        (["jobs", "list", "--after", "nonsense!", "--store", "{store}"], "cursor"),
        (["jobs", "list", "--store", "mysql://x"], "no ledger of this kind"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(tmp_path: Any, arguments: list[str], words: str) -> None:
    store = str(tmp_path / "jobs.db")
    run("enqueue", "--store", store, "--input", "-", stdin=b'[{"id": "a", "text": "x"}]')
    assert words in refused(*(argument.format(store=store) for argument in arguments))


@pytest.mark.parametrize("name", Commands.table)
def test_the_help_of_the_program_lists_every_command_in_a_sentence(name: str) -> None:
    entry = Commands.table[name]
    listed = run("--help").out
    assert f"\n  {name} " in listed
    assert entry.summary.endswith(".")
    assert entry.load(name).name == name


def test_completion_offers_commands_and_options(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def completed(words: str) -> str:
        monkeypatch.setenv("_FENCEPOST_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return run().out

    assert set(completed("fencepost ").split()) == set(Commands.table)
    assert {"list", "show", "cancel", "resolve"} <= set(completed("fencepost jobs ").split())
    assert "--min-attempts" in completed("fencepost jobs list --min").split()
