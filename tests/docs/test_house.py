"""The pages for whoever works on the code name files, functions, statements and rooms that exist."""

import ast
import re

import pytest

from tests.house.test_layers import LAYERS, within

from .pages import ROOT, blocks

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
PAGES = [CONTRIBUTING, ARCHITECTURE]

PATH = re.compile(r"`((?:core|plugins|effects|tests|docs)/[\w./*-]*)`(?::\s((?:`\w+`(?:,\s)?)+))?")
ROOM = re.compile(r'^ +(\w+)\["([\w/]+)')
ARROW = re.compile(r"^ +(\w+) --> (.+)$")


def named(page):
    """Each path that a page names, and each name that follows it after a colon."""
    for path, names in PATH.findall(page.read_text()):
        yield path, None
        for name in re.findall(r"\w+", names):
            yield path, name


def defines(path):
    """The classes, functions and methods of a module, or the statements of a file of SQL."""
    text = path.read_text()
    if path.suffix == ".sql":
        return set(re.findall(r"^-- name: (\w+)(?:\[\w+\])?$", text, re.MULTILINE))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_every_name_in_it_exists(page):
    found = list(named(page))
    assert len(found) > 20
    assert [path for path, name in found if name is None and not list(ROOT.glob(path))] == []
    lost = [f"{path}: {name}" for path, name in found if name and name not in defines(ROOT / path)]
    assert lost == []


def test_a_jobs_way_has_ten_steps_and_each_names_its_file():
    steps = re.findall(r"^\*\*(\d+)\. .*?(?=^\*\*\d+\.|^## |\Z)", ARCHITECTURE.read_text(), re.M | re.S)
    assert steps == [str(number) for number in range(1, 11)]
    for step in re.findall(r"^\*\*\d+\. .*?(?=^\*\*\d+\.|^## |\Z)", ARCHITECTURE.read_text(), re.M | re.S):
        assert PATH.search(step), step


def test_the_picture_of_the_house_shows_rooms_that_exist_and_arrows_that_are_allowed():
    picture = re.search(r"```mermaid\n(.*?)```", CONTRIBUTING.read_text(), re.DOTALL)[1].splitlines()
    rooms = {match[1]: match[2].replace("/", ".") for line in picture if (match := ROOM.match(line))}
    arrows = [
        (rooms[match[1]], rooms[below])
        for line in picture
        if (match := ARROW.match(line))
        for below in match[2].split(" & ")
    ]
    assert set(rooms.values()) <= set(LAYERS)
    wrong = [
        (above, below)
        for above, below in arrows
        if not within(below, LAYERS[above]) and not any(within(part, {below}) for part in LAYERS[above])
    ]
    assert wrong == []
    assert {above for above, _ in arrows} == set(rooms.values()) - {"core.errors"}


def test_the_screens_in_the_readme_are_parts_of_those_that_the_program_draws():
    screens = [path.read_text() for path in (ROOT / "docs" / "explanation" / "screens").glob("*.txt")]
    shown = [block for block in blocks((ROOT / "README.md").read_text()) if block.language == "text"]
    assert len(shown) == 2
    for block in shown:
        assert any(block.text.rstrip() in screen for screen in screens), f"README.md:{block.line}"
