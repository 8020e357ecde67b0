"""Writes docs/reference/commands.md from the program: ``python -m tests.docs.commands_reference``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import typer
from fencepost.core.cli.app import app

from .pages import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "commands.md"
EXAMPLE: Final = "Example: "

_DEFAULT: Final = re.compile(r"\[default: ([^;\]]*)")
_RANGE: Final = re.compile(r"(?:-?[\d.]+<=)?x(?:[<>]=?[\d.-]+)?(?=[;\]])")
_BRACKETS: Final = re.compile(r"\s*\[(?:default: |required|x[<>]|-?[\d.]+<=x)[^\]]*\]")


@dataclass(frozen=True)
class Command:
    """One command as the program describes it."""

    name: str
    """In full, as it is typed: ``fencepost jobs list``."""
    usage: str
    text: str
    """What ``--help`` says before the options, but for the example."""
    examples: tuple[str, ...]
    parameters: tuple[tuple[str, str, str], ...]
    """Its name as it is typed, its default, what it means."""
    group: bool


def walk() -> Iterator[Command]:
    """Every command, in the order of ``--help``, each group before what is in it."""
    root: Any = typer.main.get_command(app)
    yield from _walk(root, root.make_context("fencepost", ["--help"], resilient_parsing=True))


def render() -> str:
    """The whole page."""
    commands = list(walk())
    lines = [
        "# Commands",
        "",
        "<!-- Made from the program by `python -m tests.docs.commands_reference`; change it there. -->",
        "",
        "JSON goes to stdout, everything else to stderr; the exit status is 0, or 1 for any failure (86 for an",
        "injected crash). Nothing is printed to stdout on failure, but for the findings of `doctor`, which are what it",
        "was asked for. Commands that people look at draw tables on a terminal and print JSON everywhere else, or",
        "with `--json`; colours respect `NO_COLOR`. `enqueue`, `worker`, `status` and `demo` print JSON always.",
        "",
        "Names have one style for each place. Options are `--kebab-case`. The fields of documents, of `fencepost.toml`",
        "and of Python are `snake_case`. A stored job keeps the names of its row, `CamelCase`, wherever it is shown.",
        "",
        "A SPAN is a number and a unit: `250ms`, `90s`, `5m`, `1.5h`, `7d`; without a unit it is seconds, so `1.5` is",
        "a second and a half. It is rounded up to milliseconds. This is the style of options and of `every`.",
        "An option that ends in `-ms` takes a whole number of milliseconds. Documents, `fencepost.toml` and the Python",
        "API have numbers whose names end in the unit: `lease_until_ms`, `visibility_timeout_s`.",
        "",
        "| command | |",
        "|---|---|",
        *(f"| [`{one.name}`](#{_anchor(one.name)}) | {_summary(one)} |" for one in commands),
    ]
    for one in commands:
        lines += ["", f"## {one.name}", "", one.text, "", "```text", one.usage, *one.examples, "```"]
        if one.parameters:
            lines += ["", "| | default | |", "|---|---|---|"]
            lines += [f"| `{name}` | {default} | {meaning} |" for name, default, meaning in one.parameters]
    return "\n".join(lines) + "\n"


def _walk(command: Any, context: Any) -> Iterator[Command]:
    table = getattr(command, "commands", None)
    yield _read(command, context, group=table is not None)
    for name in command.list_commands(context) if table is not None else ():
        inner = command.get_command(context, name)
        yield from _walk(inner, inner.make_context(name, [], parent=context, resilient_parsing=True))


def _read(command: Any, context: Any, *, group: bool) -> Command:
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    examples = tuple(part.removeprefix(EXAMPLE) for part in paragraphs if part.startswith(EXAMPLE))
    text = "\n\n".join(part for part in paragraphs if not part.startswith(EXAMPLE))
    parameters = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and not parameter.hidden:
            parameters.append(_parameter(parameter, *record))
    return Command(
        context.command_path,
        command.get_usage(context).removeprefix("Usage: ").replace("\n", " "),
        _escape(text),
        examples,
        tuple(parameters),
        group,
    )


def _parameter(parameter: Any, typed: str, meaning: str) -> tuple[str, str, str]:
    """What stands in brackets at the end is told apart: the default, the range, whether it is required."""
    text = " ".join(meaning.split())
    default = _DEFAULT.search(text)
    bounds = _RANGE.search(text)
    meaning = _BRACKETS.sub("", text)
    if bounds is not None:
        meaning += f" ({_range(bounds[0])})"
    said = "required" if "required]" in text else default[1] if default else ""
    return typed.replace("|", "\\|"), _escape(said), _escape(meaning)


def _range(text: str) -> str:
    low = re.search(r"(-?[\d.]+)<=x|x>=(-?[\d.]+)", text)
    high = re.search(r"x<=([\d.]+)", text)
    least = (low[1] or low[2]) if low else None
    if least and high:
        return f"{least} to {high[1]}"
    return f"{least} or more" if least else f"at most {high[1] if high else ''}"


def _summary(one: Command) -> str:
    return re.split(r"(?<=[.])\s", one.text, maxsplit=1)[0]


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _escape(text: str) -> str:
    return re.sub(r"(--[a-z][a-z-]*)", r"`\1`", text.replace("|", "\\|").replace("<", "&lt;"))


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
