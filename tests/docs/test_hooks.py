"""The interface for authors is documented and tested, whole."""

import re

import pytest
from fencepost.core.model.effect import EffectInfo, EffectRequest, Setting
from fencepost.plugins import __all__ as door
from fencepost.plugins.rules import HOOKS
from fencepost.plugins.testing import POINTS, make_request

from .hooks_reference import FIELDS, PAGE, read, render
from .pages import ROOT

PAGES = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests" / "plugins").rglob("*.py"))


def test_the_reference_of_hooks_is_what_the_hooks_say():
    assert PAGE.read_text() == render(), "run python -m tests.docs.hooks_reference"


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_says_when_it_is_called_and_what_follows(name):
    hook = read(name)
    assert tuple(hook.fields) == FIELDS
    assert all(hook.fields.values())
    assert hook.text.endswith(".")


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_implemented_by_a_test(name):
    implemented = re.search(rf"@hookimpl[^\n]*\n\s*(?:async )?def {name}\(", TESTS)
    observed = re.search(rf'"{name}": \{{', TESTS)
    assert implemented or observed


@pytest.mark.parametrize("name", door)
def test_every_name_of_the_door_is_documented(name):
    assert re.search(rf"\b{name}\b", PAGES)


@pytest.mark.parametrize(
    "name",
    [
        *EffectInfo.__dataclass_fields__,
        *Setting.__dataclass_fields__,
        *(name for name in vars(make_request("text")) if not name.startswith("_")),
        *(name for name in vars(EffectRequest) if not name.startswith("_")),
    ],
)
def test_every_part_of_what_an_author_handles_is_in_the_reference(name):
    assert f"`{name}" in (ROOT / "docs" / "reference" / "effects.md").read_text()


@pytest.mark.parametrize("name", POINTS)
def test_every_point_of_the_crash_kit_is_documented(name):
    assert f"`{name}" in (ROOT / "docs" / "how-to" / "test-effects.md").read_text()
