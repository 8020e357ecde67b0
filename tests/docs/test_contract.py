"""The contract's lists of errors, verbs and values are those of the program."""

import dataclasses
import inspect
import re

import fencepost.core
import pytest
from fencepost.core import FencepostError, Ledger, errors

from .pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "contract.md").read_text()
LISTED = re.compile(r"^    (\w+)\(([^()]*(?:\(\)[^()]*)*)\)", re.MULTILINE)


def section(number):
    return re.search(rf"^## {number}\. .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[0]


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
    assert set(re.findall(r"`([A-Z]\w+)", section(4))) == classes


def test_errors_are_said_to_be_what_they_are():
    for name, parent in re.findall(r"`(\w+)` \(an? `(\w+)`\)", section(4)):
        assert issubclass(getattr(errors, name), getattr(errors, parent))
