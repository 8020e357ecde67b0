"""Files that are called like modules of the standard library, or import their siblings, in the working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import document, fencepost, refused

ONE = b'[{"id": "a", "text": "x"}]'
PLUGIN = """
from fencepost.plugins import EffectInfo, hookimpl
{imports}

@hookimpl
def effect_info():
    return EffectInfo(name="mine", summary="Mine.")

@hookimpl
def effect_outcome(text):
    return {outcome}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A working folder with files that end every process that imports them."""
    for name in ("json", "random", "token", "typing", "subprocess", "asyncio"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('imported {name} of the working folder')\n")
    (tmp_path / "in.json").write_bytes(ONE)
    return tmp_path


def test_the_demo_imports_nothing_from_the_working_folder(here: Path) -> None:
    ended = fencepost("demo", "--input", here / "in.json", cwd=here, env={"PYTHONSAFEPATH": "1"})
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_crash_kit_imports_nothing_from_the_working_folder(here: Path) -> None:
    (here / "mine.py").write_text(PLUGIN.format(imports="", outcome="{}"))
    ended = fencepost(
        *("plugins", "check", "mine", "--plugin", "mine.py", "--json"), cwd=here, env={"PYTHONSAFEPATH": "1"}
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("name", ["statistics", "json", "xml", "xml.dom", "statistics:plugin"])
def test_a_plugin_that_is_named_like_a_standard_module_is_told_of_it(tmp_path: Path, name: str) -> None:
    module = name.partition(":")[0]
    said = refused("worker", "--store", tmp_path / "jobs.db", "--plugin", name, cwd=tmp_path)
    assert f"{module!r} is a module of Python's standard library, not a plugin" in said


def test_a_file_that_is_named_like_a_standard_module_is_taken_by_its_file_name(tmp_path: Path) -> None:
    (tmp_path / "statistics.py").write_text(PLUGIN.format(imports="", outcome="{}"))
    common = ("--store", tmp_path / "jobs.db", "--effect", "mine", "--plugin", "statistics.py")
    document("enqueue", *common, "--input", "-", stdin=ONE, cwd=tmp_path)
    assert document("worker", *common, cwd=tmp_path)["events"][0]["state"] == "completed"


@pytest.mark.parametrize("named", ["fx/mine.py", "./fx/mine.py"])
def test_a_plugin_file_imports_its_siblings(tmp_path: Path, named: str) -> None:
    (tmp_path / "fx").mkdir()
    source = PLUGIN.format(imports="from helpers_of_mine import answer", outcome='{"answer": answer()}')
    (tmp_path / "fx" / "mine.py").write_text(source)
    (tmp_path / "fx" / "helpers_of_mine.py").write_text("def answer():\n    return 42\n")
    common = ("--store", tmp_path / "jobs.db", "--effect", "mine", "--plugin", named)
    document("enqueue", *common, "--input", "-", stdin=ONE, cwd=tmp_path)
    assert document("worker", *common, cwd=tmp_path)["events"][0]["state"] == "completed"


def test_a_sibling_takes_no_module_s_place(tmp_path: Path) -> None:
    (tmp_path / "pluggy.py").write_text("raise SystemExit('the wrong pluggy')\n")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')\n")
    (tmp_path / "mine.py").write_text(
        PLUGIN.format(imports="import json, pluggy", outcome='{"n": json.loads("1")}')
    )
    ended = fencepost(
        *("plugins", "--plugin", tmp_path / "mine.py", "--json"), cwd=Path("/"), env={"PYTHONSAFEPATH": "1"}
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
