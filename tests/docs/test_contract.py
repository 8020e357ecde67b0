"""The contract's lists of errors, verbs and values are those of the program, and its sections are found by number."""

import builtins
import dataclasses
import inspect
import re

import fencepost.core
import pytest
from fencepost.core import FencepostError, Ledger, errors

from .pages import ROOT

FOLDER = ROOT / "docs" / "reference" / "contract"
INDEX = FOLDER / "README.md"
PAGES = {page.name: page.read_text() for page in sorted(FOLDER.glob("*.md"))}

HEADING = re.compile(r"^#+ (\d+(?:\.\d+)?)\.? (.+)$", re.MULTILINE)
LISTED = re.compile(r"^(\w+)\(([^()]*(?:\(\)[^()]*)*)\)", re.MULTILINE)
CITED = re.compile(r"(?:\b[Cc]ontract|\bcontract/[\w-]+\.md) ((?:§\d+(?:\.\d+)?(?:, )?)+)")


def section(number):
    """The pages of a section: that of its own heading, and those of its parts that have pages of their own."""
    return "\n".join(text for text in PAGES.values() if re.match(rf"# {number}[. ]", text))


def names(parameters):
    """The names of a list of parameters, without their defaults."""
    return re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\([^)]*\)", "", parameters))


VERBS = {
    name: verb for name, verb in inspect.getmembers(Ledger, inspect.isfunction) if not name.startswith("_")
}
LISTS = {name: names(parameters) for name, parameters in LISTED.findall(section(7))}
VALUES = {name for name in LISTS if name[0].isupper()}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_is_listed_with_its_arguments(name):
    arguments = [each for each in inspect.signature(VERBS[name]).parameters if each not in ("self", "now_ms")]
    assert LISTS[name] == arguments


def test_no_other_verb_is_listed():
    assert set(LISTS) - VALUES == set(VERBS)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_every_value_is_listed_with_its_fields(name):
    value = getattr(fencepost.core, name)
    fields = (
        value._fields if issubclass(value, tuple) else [field.name for field in dataclasses.fields(value)]
    )
    assert LISTS[name] == list(fields)


def test_every_value_that_a_verb_takes_or_gives_is_listed():
    spoken_of = {
        word
        for verb in VERBS.values()
        for annotation in verb.__annotations__.values()
        for word in re.findall(r"\w+", str(annotation))
        if word in fencepost.core.__all__
    }
    assert spoken_of == VALUES - {"Stamps"}, "Stamps are a part of others"


def test_every_error_is_named_and_no_other():
    classes = {
        name
        for name, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, FencepostError) or each is FencepostError
    }
    named = set(re.findall(r"`([A-Z]\w+)[`(]", section(4)))
    assert named - set(dir(builtins)) == classes


def test_errors_are_said_to_be_what_they_are():
    for name, parent in re.findall(r"`(\w+)` \(an? `(\w+)`\)", section(4)):
        assert issubclass(getattr(errors, name), getattr(errors, parent))


# -- The pages --


def numbers():
    return [number for text in PAGES.values() for number, _ in HEADING.findall(text)]


def test_a_section_number_names_one_place():
    found = numbers()
    assert sorted(found) == sorted(set(found))
    assert {str(number) for number in range(1, 11)} <= set(found)


def test_the_index_names_every_page_beside_its_number():
    listed = re.findall(r"^\| (\d+) \|.*", INDEX.read_text(), re.MULTILINE)
    rows = {
        page: number
        for number in listed
        for row in re.findall(rf"^\| {number} \|(.*)$", INDEX.read_text(), re.MULTILINE)
        for page in re.findall(r"\]\(([\w-]+\.md)\)", row)
    }
    pages = {
        name: HEADING.search(text)[1].split(".")[0] for name, text in PAGES.items() if name != INDEX.name
    }
    assert rows == pages


@pytest.mark.parametrize("name", PAGES)
def test_no_line_of_a_page_is_longer_than_120_characters(name):
    assert [line for line in PAGES[name].splitlines() if len(line) > 120] == []


def test_every_section_that_is_cited_exists():
    known = set(numbers())
    cited = {
        (str(path.relative_to(ROOT)), number)
        for folder in ("core", "plugins", "effects", "tests", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".sql", ".toml"}
        for numbers in CITED.findall(path.read_text("utf-8"))
        for number in re.findall(r"[\d.]+", numbers)
    }
    assert len(cited) > 20
    assert [(path, number) for path, number in sorted(cited) if number.rstrip(".") not in known] == []
