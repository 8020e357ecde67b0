"""Writes docs/reference/hooks.md from plugins/hookspecs.py: ``python -m tests.docs.hooks_reference``."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Final

from fencepost.plugins import API_VERSION, hookspecs
from fencepost.plugins.rules import HOOKS

from .pages import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "hooks.md"
FIELDS: Final = ("Called", "Thread", "Raising", "Wrappers", "Since")
"""What the docstring of every hook must say, in this order, after its text."""


@dataclass(frozen=True)
class Hook:
    """A hook as its docstring and its signature describe it."""

    name: str
    signature: str
    text: str
    fields: dict[str, str]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return re.split(r"(?<=\.)\s", self.text, maxsplit=1)[0]


def read(name: str) -> Hook:
    """The hook of that name."""
    function = getattr(hookspecs, name)
    text = inspect.cleandoc(function.__doc__)
    body, *parts = re.split(rf"^({'|'.join(FIELDS)}): ", text, flags=re.MULTILINE)
    fields = {key: " ".join(value.split()) for key, value in zip(parts[::2], parts[1::2], strict=True)}
    arguments = ", ".join(str(parameter) for parameter in inspect.signature(function).parameters.values())
    returns = inspect.signature(function).return_annotation
    return Hook(name, f"{name}({arguments}) -> {returns}".replace("'", ""), _markdown(body), fields)


def render() -> str:
    """The whole page."""
    hooks = [read(name) for name in HOOKS]
    lines = [
        "# Hooks",
        "",
        "<!-- Made from plugins/hookspecs.py by `python -m tests.docs.hooks_reference`; change it there. -->",
        "",
        f"Plugin API version {API_VERSION}. {_markdown(inspect.cleandoc(hookspecs.__doc__ or ''))}",
        "",
        "| hook | |",
        "|---|---|",
        *(f"| [`{hook.name}`](#{hook.name}) | {hook.summary} |" for hook in hooks),
    ]
    for hook in hooks:
        lines += [
            "",
            f"## {hook.name}",
            "",
            "```text",
            hook.signature,
            "```",
            "",
            hook.text,
            "",
            "| | |",
            "|---|---|",
        ]
        lines += [f"| {field.lower()} | {_markdown(hook.fields[field])} |" for field in FIELDS]
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    """Docstring mark-up as Markdown, each paragraph on one line."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
    return "\n\n".join(paragraphs).replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
