"""An installed effect that lacks settings is never left out in silence: everybody names the setting and the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.programs import FENCEPOST, document, fencepost, refused

ONE = b'[{"id": "a", "text": "x"}]'
POST = """
from fencepost.plugins import EffectInfo, Setting, hookimpl

@hookimpl
def effect_info():
    return EffectInfo(name="post", summary="Posts.", settings={"url": Setting("Where to.", required=True)})

@hookimpl
def effect_outcome(text):
    return {}
"""
NEEDS = "the effect 'post' needs the setting url"
HOW = "give it in fencepost.toml under [effects.post], or with --set post.KEY=VALUE"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, on a machine where a distribution with the effect ``post`` is installed."""
    site, here = tmp_path / "site", tmp_path / "here"
    information = site / "poster-1.dist-info"
    information.mkdir(parents=True)
    here.mkdir()
    (site / "poster.py").write_text(POST)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: poster\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[fencepost]\npost = poster\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    monkeypatch.chdir(here)
    return here


def enqueue(effect: str = "post") -> None:
    ended = fencepost("enqueue", "--store", "jobs.db", "--effect", effect, "--input", "-", stdin=ONE)
    assert ended.returncode == 0


@pytest.mark.usefixtures("here")
def test_a_worker_names_the_setting_and_how_to_give_it() -> None:
    enqueue()
    ended = fencepost("worker", "--store", "jobs.db")
    assert (ended.returncode, json.loads(ended.stdout)["events"]) == (0, [])
    assert f"the effect 'post' is left out: {NEEDS}: {HOW}" in ended.stderr.decode()


@pytest.mark.usefixtures("here")
def test_a_following_worker_says_so_at_once_though_no_job_waits() -> None:
    document("status", "--store", "jobs.db")
    command = [*FENCEPOST, "worker", "--store", "jobs.db", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        assert f"{NEEDS}: {HOW}" in worker.stderr.readline()
        worker.send_signal(signal.SIGTERM)


@pytest.mark.usefixtures("here")
def test_an_effect_that_ships_is_only_spoken_of_where_jobs_wait_for_it() -> None:
    enqueue("count")
    quiet = fencepost("worker", "--store", "jobs.db", "--no-plugin", "post")
    assert (quiet.returncode, quiet.stderr) == (0, b"")
    other = b'[{"id": "b", "text": "x"}]'
    assert (
        fencepost(
            "enqueue", "--store", "jobs.db", "--effect", "remote", "--input", "-", stdin=other
        ).returncode
        == 0
    )
    said = fencepost("worker", "--store", "jobs.db", "--no-plugin", "post").stderr.decode()
    assert (
        "jobs wait for the effect 'remote', which is left out: the effect 'remote' needs the setting" in said
    )


@pytest.mark.usefixtures("here")
def test_the_plugins_doctor_names_the_setting_and_how_to_give_it() -> None:
    said = refused("plugins", "doctor")
    assert f"{NEEDS}: {HOW}" in said
    assert "post (of poster 1)" in said


def test_the_plugins_doctor_is_content_once_the_setting_is_given(here: Path) -> None:
    assert document("plugins", "doctor", "--set", "post.url=https://x.example")["broken"] == []
    (here / "fencepost.toml").write_text('[effects.post]\nurl = "https://x.example"\n')
    assert document("plugins", "doctor")["broken"] == []
    (here / "fencepost.toml").write_text("[effects.remote]\ntimeout_s = 3\n")
    assert "the effect 'remote' needs the setting" in refused("plugins", "doctor", "--no-plugin", "post")


def test_jobs_show_names_the_setting_and_how_to_give_it(here: Path) -> None:
    enqueue()
    shown = document("jobs", "show", "a", "--store", "jobs.db")
    assert "has the effect 'post', which lacks settings here" in shown["why"]
    assert any(f"{NEEDS}: {HOW}" in advice["what"] for advice in shown["advice"])
    (here / "fencepost.toml").write_text('[effects.post]\nurl = "https://x.example"\n')
    shown = document("jobs", "show", "a", "--store", "jobs.db")
    assert "lacks settings" not in shown["why"]


def test_the_doctor_finds_jobs_that_wait_for_an_effect_without_settings(here: Path) -> None:
    enqueue()
    ended = fencepost("doctor", "--store", "jobs.db")
    assert ended.returncode == 1
    (finding,) = json.loads(ended.stdout)["findings"]
    assert (finding["check"], finding["ids"]) == ("effect-without-settings", ["a"])
    assert f"{NEEDS}: {HOW}" in finding["remedy"]
    (here / "fencepost.toml").write_text('[effects.post]\nurl = "https://x.example"\n')
    assert document("doctor", "--store", "jobs.db")["sound"]
