"""A group of commands that imports and builds each only when it is used.

Typer builds a command from its signature, which takes milliseconds each: for two dozen commands that would be most
of the time that any of them takes to start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


class Lazy(NamedTuple):
    """One command: the place of its function or its ``typer.Typer``, and its line in ``--help``."""

    module: str
    """Below ``fencepost.core.cli``."""
    attribute: str
    summary: str

    def load(self, name: str) -> Command:
        """Import the command and build it."""
        found: typer.Typer | Callable[..., Any] = getattr(
            import_module(f".{self.module}", __package__), self.attribute
        )
        if isinstance(found, typer.Typer):
            return _in_plain_words(typer.main.get_group(found))
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        return _in_plain_words(typer.main.get_command(alone))


def _in_plain_words(command: Command) -> Command:
    """Let errors say "whole number", where the library says "int range"."""
    for parameter in command.params:
        if parameter.type.name.startswith("int"):
            parameter.type = copy(parameter.type)  # the library shares it between options
            parameter.type.name = "whole number"
    for inner in getattr(command, "commands", {}).values():
        _in_plain_words(inner)
    return command


class _Commands(Mapping[str, "Command"]):
    """The commands of a group as a mapping that builds each when it is asked for."""

    def __init__(self, table: Mapping[str, Lazy]) -> None:
        self._table: Final = table
        self._built: Final[dict[str, Command]] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._built:
            self._built[name] = self._table[name].load(name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


class LazyGroup(TyperGroup):
    """A group whose commands are those of ``table``."""

    table: ClassVar[Mapping[str, Lazy]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands(self.table)  # type: ignore[assignment]  # nothing adds to it later

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names, without building anything."""
        return list(self.table)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the list of ``--help``, without building anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.table.items()])
