"""The suite is for anyone's ledger: the example in its docstring runs, from a project of its own."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

from fencepost.core import testing

HEAD = """
import itertools
import pytest
from fencepost.core.testing import LedgerContract, ModelLedger, ModelStore, Store

stores = {}

def MyLedger(path):
    return ModelLedger(stores.setdefault(path, ModelStore()))
"""


def example() -> str:
    """The code in the package's docstring."""
    lines = inspect.cleandoc(testing.__doc__ or "").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("    class "))
    last = next(place for place, line in enumerate(lines[first:], first) if line and line[0] != " ")
    return textwrap.dedent("\n".join(lines[first:last]))


def run(folder: Path, code: str, choice: str) -> str:
    (folder / "test_mine.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "-k", choice, "test_mine.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_the_example_runs_and_skips_only_what_the_ledger_says_it_lacks(tmp_path: Path) -> None:
    output = run(tmp_path, HEAD + example(), "boundary or processes or caller")
    assert " failed" not in output
    assert " error" not in output
    assert " passed" in output
    reasons = {line.rpartition(": ")[2] for line in output.splitlines() if line.startswith("SKIPPED")}
    assert reasons == {
        "no other process can open this store",
        "this ledger joins no transaction",
    }


def test_a_fault_is_shown_with_the_values_that_differ(tmp_path: Path) -> None:
    late = "\n\nModelLedger.now_ms = lambda self: 0\nModelLedger.get_job = lambda self, id: None\n"
    output = run(tmp_path, HEAD + late + example(), "test_a_claim_takes_the_job_under")
    assert "1 failed" in output
    assert "assert None == Job(id='a', state='running'" in output
