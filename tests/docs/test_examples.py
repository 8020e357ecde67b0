"""The example distributions, as their users get them: built, installed in a new environment, tested, and used.

The environment's own packages are the wheels under test; what those depend on comes from the environment of this suite.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .pages import ROOT, run_page

EXAMPLES = ROOT / "docs" / "examples"
NAMES = ("fencepost-letters", "fencepost-bank")


def run(*command, cwd=None):
    """One command to its end, without anything of this suite's environment."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "PYTEST", "FENCEPOST"))
    }
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, f"{command}:\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def build(source, wheels):
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", wheels, source)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The folder of the commands of a new environment with Fencepost and both examples, each from its wheel."""
    folder = tmp_path_factory.mktemp("examples")
    wheels, venv = folder / "wheels", folder / "venv"
    source = folder / "fencepost"
    source.mkdir()
    for name in ("core", "plugins", "effects"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build(source, wheels)
    for name in NAMES:
        build(shutil.copytree(EXAMPLES / name, folder / name), wheels)
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    site = Path(
        run(venv / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    # A plain path, read after the environment's own: it lends what is not installed there. (The .pth files in it, such
    # as that of the editable fencepost, are not read.)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        venv,
        "install",
        "--no-deps",
        "--no-index",
        *wheels.glob("*.whl"),
    )
    return venv / "bin"


def test_the_environment_runs_the_wheel_and_not_the_checkout(environment):
    where = run(
        environment / "python", "-c", "import fencepost.core; print(fencepost.core.__file__)", cwd="/"
    )
    assert Path(where.strip()).is_relative_to(environment.parent)


@pytest.mark.parametrize("name", NAMES)
def test_its_own_tests_pass(environment, tmp_path, name):
    shutil.copytree(EXAMPLES / name / "tests", tmp_path / "tests")
    said = run(
        environment / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", cwd=tmp_path
    )
    assert " passed" in said
    assert "skipped" not in said


@pytest.mark.parametrize(
    ("name", "effect"), [("fencepost-letters", "letter"), ("fencepost-bank", "transfer")]
)
def test_it_is_listed_with_its_distribution(environment, name, effect):
    plugins = json.loads(run(environment / "fencepost", "plugins", "--json"))["plugins"]
    [row] = [row for row in plugins if row["name"] == effect]
    assert (row["distribution"], row["version"], row["state"]) == (name, "1.0.0", "loaded")


@pytest.mark.parametrize("name", NAMES)
def test_its_readme_does_what_it_says(environment, tmp_path, name):
    assert run_page(EXAMPLES / name / "README.md", tmp_path, bin=environment) > 0


def test_a_job_runs_through_the_letters(environment, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "jobs.json").write_text('[{"id": "dear-reader", "text": "All is well."}]')
    settings = ("--effect", "letter", "--set", "folder=letters")
    run(environment / "fencepost", "enqueue", "--input", "jobs.json", *settings, cwd=tmp_path)
    [event] = json.loads(run(environment / "fencepost", "worker", *settings, cwd=tmp_path))["events"]
    assert event["state"] == "completed"
    [letter] = (tmp_path / "letters").iterdir()
    assert letter.read_text() == "All is well."
    [receipt] = json.loads(run(environment / "fencepost", "status", cwd=tmp_path))["effects"]
    assert (receipt["effect"], receipt["file"]) == ("letter", letter.name)


def test_a_job_runs_through_the_bank(environment, tmp_path):
    bank = "import sys; from fencepost_bank.bank import Bank; bank = Bank('bank.db');"
    run(
        environment / "python",
        "-c",
        bank + "bank.open_account('ada', 9); bank.open_account('bob', 0)",
        cwd=tmp_path,
    )
    order = json.dumps({"from": "ada", "to": "bob", "cents": 7})
    (tmp_path / "jobs.json").write_text(json.dumps([{"id": "rent", "text": order}]))
    settings = ("--effect", "transfer", "--set", "bank=bank.db", "--set", "namespace=test")
    run(environment / "fencepost", "enqueue", "--input", "jobs.json", *settings, cwd=tmp_path)
    [event] = json.loads(run(environment / "fencepost", "worker", *settings, cwd=tmp_path))["events"]
    assert event["state"] == "completed"
    balances = run(environment / "python", "-c", bank + "print(bank.balances())", cwd=tmp_path)
    assert balances == "{'ada': 2, 'bob': 7}\n"
