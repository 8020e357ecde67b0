"""``fencepost plugins check NAME``: the crash kit from the command line."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from fencepost.core.cli.plugins import app
from fencepost.core.errors import InvalidInput, PluginError
from typer.testing import CliRunner

SUBJECTS = Path(__file__).parent / "subjects"
COUNT = """
import pathlib, sys
print(sum(path.read_text().count("hello") for path in pathlib.Path(sys.argv[1]).glob("*.txt")))
"""


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Runs the command for one of the effects in subjects/ that writes to a folder."""
    monkeypatch.chdir(SUBJECTS)
    monkeypatch.setenv("PYTHONPATH", str(SUBJECTS))
    monkeypatch.syspath_prepend(SUBJECTS)
    folder = tmp_path / "files"
    folder.mkdir()
    script = tmp_path / "count.py"
    script.write_text(COUNT)

    def run(effect, *arguments, module="good", observed=None):
        count = observed or shlex.join([sys.executable, str(script), str(folder)])
        name = effect.removeprefix("good-").replace("-", "_")
        options = ["--plugin", f"{module}:{name}", "--observed", count, "--set", f"folder={folder}"]
        return CliRunner().invoke(app, ["check", effect, *options, *arguments])

    return run


def test_it_prints_a_table_of_the_matrix(check, on_a_terminal):
    result = check("good-local", "--point", "undisturbed", "--point", "in-effect", "--point", "after-effect")
    assert result.exit_code == 0, result.exception
    assert result.stdout.splitlines() == [
        "point                   seen  job        promise",
        "undisturbed             1     completed  kept",
        "in-effect:half written  1     completed  kept",
        "in-effect:written       1     completed  kept",
        "after-effect            1     completed  kept",
    ]


def test_it_fails_with_the_table_and_the_remedies(check):
    result = check("appends", "--point", "undisturbed", "--point", "after-effect", module="faulty")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert isinstance(result.exception, PluginError)
    message = str(result.exception)
    assert "the effect 'appends' (delivery 'local') does not keep its promise at 1 of 2 points" in message
    assert "after-effect  2     completed  BROKEN" in message
    assert (
        "killed after the effect and before the receipt: the outside world saw it twice instead of once."
        in message
    )


def test_a_pure_effect_needs_nothing_but_its_name():
    result = CliRunner().invoke(app, ["check", "count", "--text", "two words", "--point", "pure"])
    assert result.exit_code == 0, result.exception
    assert json.loads(result.stdout) == {
        "schema_version": 1,
        "effect": "count",
        "delivery": "local",
        "rows": [{"point": "pure", "seen": None, "job": "-", "promise": "kept"}],
    }


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        ("echo many", "it printed 'many', which is no whole number"),
        ("false", "it ended with status 1"),
        ("/none/like/it", "it cannot be run: No such file"),
    ],
)
def test_an_observer_command_that_does_not_count_is_said(check, observed, says):
    result = check("good-local", "--point", "undisturbed", observed=observed)
    assert isinstance(result.exception, InvalidInput)
    assert says in str(result.exception)


def test_what_cannot_be_checked_is_said(check, monkeypatch):
    monkeypatch.chdir(SUBJECTS)
    runner = CliRunner()
    result = runner.invoke(app, ["check", "good-local", "--plugin", "good:local"])
    assert "give observed=" in str(result.exception)
    assert "--observed COMMAND" in str(result.exception)
    result = runner.invoke(app, ["check", "count", "--point", "after-lunch"])
    assert "there is no point 'after-lunch'" in str(result.exception)
    result = runner.invoke(app, ["check", "none-like-it"])
    assert "there is no effect 'none-like-it'" in str(result.exception)
