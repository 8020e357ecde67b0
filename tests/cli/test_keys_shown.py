"""``jobs show`` says by what a receiver knows a job: the key of all its attempts, and the fence of the last one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from tests.programs import document, fencepost

BANK = """
import json, pathlib
from fencepost.plugins import EffectInfo, Hold, Retry, Setting, hookimpl

class Bank:
    @hookimpl
    def effect_info(self):
        return EffectInfo(name="bank", summary="Charges.", delivery="keyed", receiver_key="Idempotency-Key")

    @hookimpl
    def effect_apply(self, request):
        seen = {"key": request.idempotency_key, "fence": request.fence}
        pathlib.Path("seen.json").write_text(json.dumps(seen))
        if request.text == "retry":
            raise Retry("not now", after_s=0)
        if request.text == "hold":
            raise Hold("who knows")
        return seen

plugin = Bank()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the effect ``bank`` installed and its namespace configured."""
    site, here = tmp_path / "site", tmp_path / "here"
    information = site / "bank-1.dist-info"
    information.mkdir(parents=True)
    here.mkdir()
    (site / "bank_of_test.py").write_text(BANK)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: bank\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[fencepost]\nbank = bank_of_test:plugin\n")
    (here / "fencepost.toml").write_text('store = "jobs.db"\n[effects.bank]\nnamespace = "shop"\n')
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    monkeypatch.chdir(here)
    return here


def shown_after(text: str, attempts: int) -> Any:
    records = f'[{{"id": "a", "text": "{text}"}}]'.encode()
    document("enqueue", "--effect", "bank", "--input", "-", stdin=records)
    for _ in range(attempts):
        document("worker")
    return document("jobs", "show", "a")


@pytest.mark.parametrize(
    ("text", "attempts", "state"),
    [("done", 1, "completed"), ("retry", 1, "queued"), ("retry", 2, "queued"), ("hold", 1, "held")],
)
def test_the_key_and_the_fence_are_those_that_the_receiver_saw(
    here: Path, text: str, attempts: int, state: str
) -> None:
    shown = shown_after(text, attempts)
    assert shown["job"]["State"] == state
    seen = json.loads((here / "seen.json").read_text())
    assert (shown["idempotency_key"], shown["fence"]) == (seen["key"], seen["fence"])


def test_a_job_that_was_never_claimed_has_its_key_already_and_no_fence(here: Path) -> None:
    shown = shown_after("done", 0)
    assert shown["idempotency_key"].startswith("fp1-")
    assert shown["fence"] is None


def test_the_fence_is_not_guessed_after_somebody_has_moved_the_job(here: Path) -> None:
    shown_after("hold", 1)
    document("jobs", "resolve", "a", "--fail")
    assert document("jobs", "show", "a")["fence"] is None


def test_a_pure_effect_has_no_key(here: Path) -> None:
    document("enqueue", "--input", "-", stdin=b'[{"id": "a", "text": "x"}]')
    document("worker")
    shown = document("jobs", "show", "a")
    assert (shown["idempotency_key"], shown["fence"]) == (None, 1)


def test_people_see_both_on_the_screen(here: Path) -> None:
    key = shown_after("done", 1)["idempotency_key"]
    with Terminal("jobs", "show", "a", columns=120) as terminal:
        assert terminal.end() == 0
        assert f"{key} (the same for every attempt)" in terminal.text
        assert "1 (of the last claim)" in terminal.text
    assert fencepost("jobs", "show", "a").returncode == 0
