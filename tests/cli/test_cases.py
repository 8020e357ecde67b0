"""The recorded behaviour of the four commands, case by case; the format is described in ``case_runner.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.case_runner import run_case
from tests.programs import FENCEPOST

CASES = [
    case
    for file in sorted((Path(__file__).parent / "cases").glob("*.json"))
    for case in json.loads(file.read_text("utf-8"))
]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_program_behaves_as_recorded(case: dict[str, Any]) -> None:
    assert run_case(case, list(FENCEPOST)) == []
