"""``fencepost.core`` opens to every public name, and loads none of them before it is asked for."""

from __future__ import annotations

import ast
from pathlib import Path

import fencepost.core

from tests.programs import python

DOOR = Path(fencepost.core.__file__)


def test_every_public_name_is_there_and_is_what_checkers_are_told() -> None:
    told = {
        alias.name: f"fencepost.core.{node.module}"
        for node in ast.walk(ast.parse(DOOR.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    assert sorted(told) == fencepost.core.__all__
    for name, module in told.items():
        assert getattr(fencepost.core, name).__module__ == module


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(fencepost.core, "frobnicate")


def test_the_door_alone_loads_no_room_behind_it() -> None:
    script = "import sys, fencepost.core; print([n for n in sys.modules if n.startswith('fencepost.core.')])"
    assert python(script).stdout == b"[]\n"
