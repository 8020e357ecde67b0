"""The page on fencepost.toml lists every key that the program takes, every variable, and no other."""

import re
from dataclasses import fields

from fencepost.core import Stamps
from fencepost.core.config import Config

from .pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "configuration.md").read_text()


def rows(heading):
    """The names in the first column of the table below a heading."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_every_part_of_the_file_has_a_section():
    sections = re.findall(r"^## `\[?(\w+)", PAGE, re.MULTILINE)
    assert set(sections) == {field.name for field in fields(Config)} - {"path", "folder"}


def test_every_stamp_of_a_queue_is_listed():
    assert rows("`[queues.NAME]`") == [field.name for field in fields(Stamps)]


def test_every_variable_that_the_program_reads_is_listed():
    read = {
        name
        for room in ("core", "plugins", "effects")
        for path in (ROOT / room).rglob("*.py")
        if "testing" not in path.parts
        for name in re.findall(r"\b(?:FENCEPOST_[A-Z_]+|NO_COLOR)\b", path.read_text())
    } - {"FENCEPOST_API"}  # a name in a plugin's module
    assert set(rows("Environment variables")) == read
