"""The reference of the commands is what the program says of itself."""

from .commands_reference import PAGE, render, walk


def test_the_reference_of_commands_is_what_the_program_says():
    assert PAGE.read_text() == render(), "run python -m tests.docs.commands_reference"


def test_every_command_is_in_it_once():
    names = [command.name for command in walk()]
    assert len(names) == len(set(names))
    assert {"fencepost jobs show", "fencepost top", "fencepost schedule add"} <= set(names)
