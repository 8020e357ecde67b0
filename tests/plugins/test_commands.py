"""Plugins in real commands: enqueue and worker, with settings, secrets, blocking and local files."""

import json
import os
from pathlib import Path
from textwrap import dedent

import pytest

from tests.programs import document, fencepost, refused

from .conftest import IMPORTS, pure

SECRET = "hunter2-hunter2"


@pytest.fixture
def project(site, tmp_path, monkeypatch):
    """An empty working folder; what ``site`` installs is installed for the commands too."""
    monkeypatch.setenv("PYTHONPATH", str(site.folder), prepend=os.pathsep)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "jobs.json").write_text('[{"id": "a", "text": "hello"}]')

    def write(name: str, source: str) -> Path:
        path = folder / name
        path.write_text(IMPORTS + dedent(source) if name.endswith(".py") else source)
        return path

    monkeypatch.chdir(folder)
    return write


def enqueue(*arguments):
    return document("enqueue", "--input", "jobs.json", *arguments)


def events(*arguments):
    return document("worker", *arguments)["events"]


def receipts():
    return document("status")["effects"]


def test_a_job_runs_through_an_effect_that_is_installed(site, project):
    site.effect("greet")
    enqueue("--effect", "greet")
    assert [event["state"] for event in events()] == ["completed"]
    [receipt] = receipts()
    assert (receipt["effect"], receipt["effect_version"], receipt["text"]) == ("greet", "1", "hello")


def test_a_job_runs_through_a_local_file_without_packaging(project):
    project("mine.py", pure("mine"))
    enqueue("--effect", "mine", "--plugin", "mine")
    assert [event["state"] for event in events("--effect", "mine", "--plugin", "mine.py")] == ["completed"]


@pytest.mark.parametrize(
    "source",
    [
        "raise RuntimeError('no')",
        "import sys; sys.exit(3)",
        "def (",
        "import os\n@hookimpl\ndef effect_inf(): pass",
    ],
)
def test_a_broken_plugin_breaks_no_command_that_does_not_need_it(site, project, source):
    site.effect("bad", source=source)
    enqueue()
    assert [event["state"] for event in events()] == ["completed"]
    assert [receipt["words"] for receipt in receipts()] == [1]
    assert "is broken: " in refused("worker", "--effect", "bad")


def test_an_effect_that_cannot_be_set_up_breaks_no_worker_of_others(site, project):
    site.effect(
        "bad", source=pure("bad") + "@hookimpl\ndef effect_configure(settings): raise OSError('no network')\n"
    )
    enqueue()
    ended = fencepost("worker")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["events"][0]["state"] == "completed"
    assert (
        b"the effect 'bad' is left out: the effect 'bad' cannot be set up: OSError: no network"
        in ended.stderr
    )
    assert "cannot be set up: OSError: no network" in refused("worker", "--effect", "bad")


def test_a_blocked_plugin_is_not_imported_by_any_command(site, project, monkeypatch, tmp_path):
    site.effect("spy", source=f"import pathlib\npathlib.Path({str(tmp_path / 'imported')!r}).touch()\n")
    enqueue("--no-plugin", "spy")
    events("--no-plugin", "spy")
    monkeypatch.setenv("FENCEPOST_NO_PLUGINS", "all")
    enqueue()
    events()
    fencepost("plugins", "--all")
    assert not (tmp_path / "imported").exists()


def test_help_and_status_import_no_plugin(site, project, tmp_path):
    site.effect("spy", source=f"import pathlib\npathlib.Path({str(tmp_path / 'imported')!r}).touch()\n")
    for arguments in (["--help"], ["worker", "--help"], ["plugins", "--help"], ["status"]):
        assert fencepost(*arguments).returncode == 0
    assert not (tmp_path / "imported").exists()


def test_settings_come_from_the_file_and_from_options(site, project):
    site.effect(
        "sign",
        source="""
        @hookimpl
        def effect_info():
            return EffectInfo(name="sign", summary="s", settings={"by": Setting("Who.", default="nobody")})

        @hookimpl
        def effect_configure(settings):
            global by
            by = settings["by"]

        @hookimpl
        def effect_outcome(text):
            return {"by": by}
        """,
    )
    project("fencepost.toml", "[effects.sign]\nby = 'the file'\n")
    project("jobs.json", '[{"id": "a", "text": "hello"}, {"id": "b", "text": "hello"}]')
    enqueue("--effect", "sign")
    events()
    events("--set", "sign.by=the option")
    assert [receipt["by"] for receipt in receipts()] == ["the file", "the option"]


def test_an_unknown_setting_names_the_file_and_the_key(site, project):
    site.effect("greet")
    path = project("fencepost.toml", "[effects.greet]\ncolour = 'red'\n")
    said = refused("worker")
    assert f"{path.name} [effects.greet]: the effect 'greet' has no setting 'colour'" in said
    assert "--set: the effect 'count' has no setting 'colour'" in refused(
        "worker", "--effect", "count", "--set", "colour=red"
    )


def test_settings_for_an_effect_that_is_not_there_do_not_go_unseen(site, project):
    path = project("fencepost.toml", "[effects.gret]\ncolour = 'red'\n[effects.blocked]\nx = 1\n")
    site.effect("blocked")
    enqueue_said = fencepost("enqueue", "--input", "jobs.json", "--no-plugin", "blocked").stderr.decode()
    assert (
        enqueue_said == f"fencepost: {path.name} [effects.gret]: no effect of that name is installed here\n"
    )
    assert "there is no effect 'gret'" in refused("worker", "--set", "gret.colour=red")


def test_a_text_that_the_effect_refuses_is_not_stored(site, project):
    site.effect(
        "strict",
        source=pure("strict") + "@hookimpl\ndef effect_validate(text): raise ValueError('too short')\n",
    )
    said = refused("enqueue", "--input", "jobs.json", "--effect", "strict")
    assert "the effect 'strict' refuses the text: too short" in said
    assert not Path("jobs-data").exists()


def test_a_secret_is_in_no_output_log_or_store_even_with_debug(site, project, monkeypatch):
    site.effect(
        "leaky",
        source="""
        import logging

        @hookimpl
        def effect_info():
            return EffectInfo(name="leaky", summary="s", settings={
                "token": Setting("t", required=True, secret=True, env="LEAKY_TOKEN")})

        @hookimpl
        def effect_configure(settings):
            global token
            token = settings["token"]
            if token.startswith("bad"):
                raise ValueError(f"no such user: {token}")

        @hookimpl
        def effect_apply(request):
            request.log.error("connecting with %s", token)
            logging.getLogger("its.own").error("its own words: %s", token)
            try:
                raise ValueError(token)
            except ValueError:
                logging.getLogger("fencepost.jobs").exception("failed")
            if request.text == "hello":
                raise ConnectionError(f"refused: {token}")
            return {"with": token}
        """,
    )
    project("jobs.json", '[{"id": "a", "text": "hello"}, {"id": "b", "text": "go"}]')
    monkeypatch.setenv("LEAKY_TOKEN", SECRET)
    enqueue("--effect", "leaky")
    outputs = [
        fencepost("--debug", "worker", "--max-jobs", "2", "--plugin", "timing", "--plugin", "log"),
        fencepost("status"),
    ]
    assert b"connecting with ***" in outputs[0].stderr
    assert b"its own words: ***" in outputs[0].stderr
    assert b"ValueError: ***" in outputs[0].stderr
    assert b"refused: ***" in outputs[0].stdout
    assert b"holds a secret setting, in 'with'" in outputs[0].stdout
    monkeypatch.setenv("LEAKY_TOKEN", "bad-" + SECRET)
    outputs.append(fencepost("--debug", "worker", "--effect", "leaky"))
    assert b"no such user: ***" in outputs[-1].stderr
    monkeypatch.delenv("LEAKY_TOKEN")
    outputs.append(fencepost("--debug", "worker", "--effect", "leaky", "--set", f"token={SECRET}"))
    assert b"it is a secret" in outputs[-1].stderr
    project("fencepost.toml", f"[effects.leaky]\ntoken = ['{SECRET}']\n")
    outputs.append(fencepost("--debug", "worker", "--effect", "leaky"))
    assert b"token must be a string" in outputs[-1].stderr
    for output in outputs:
        assert SECRET.encode() not in output.stdout + output.stderr
    stored = [path for path in Path("jobs-data").rglob("*") if path.is_file()]
    assert stored
    assert [path for path in stored if SECRET.encode() in path.read_bytes()] == []


def test_no_log_line_of_set_up_validation_or_of_handlers_of_its_own_shows_a_secret(
    site, project, monkeypatch
):
    site.effect(
        "chatty",
        source="""
        import logging, threading
        logging.basicConfig(level="INFO", format="own handler: %(message)s")
        log = logging.getLogger("chatty")

        @hookimpl
        def effect_info():
            return EffectInfo(name="chatty", summary="s", settings={
                "token": Setting("t", required=True, secret=True, env="CHATTY_TOKEN")})

        @hookimpl
        def effect_configure(settings):
            global token
            token = settings["token"]
            log.info("set up with %s", token)

        @hookimpl
        def effect_validate(text):
            log.info("validated with " + token)
            dying = threading.Thread(target=int, args=("x" + token,))
            dying.start()
            dying.join()

        @hookimpl
        def effect_apply(request):
            log.info("applied with %(token)s", {"token": token})
            return {}
        """,
    )
    project("jobs.json", '[{"id": "a", "text": "hello"}]')
    monkeypatch.setenv("CHATTY_TOKEN", SECRET)
    outputs = [
        fencepost("enqueue", "--input", "jobs.json", "--effect", "chatty"),
        fencepost("worker", "--effect", "chatty"),
    ]
    said = [output.stderr.decode().splitlines() for output in outputs]
    assert said[0][:2] == ["own handler: set up with ***", "own handler: validated with ***"]
    assert said[0][-1] == "ValueError: invalid literal for int() with base 10: 'x***'"
    assert len(said[1]) == 2, "each record is written once, in the worker's form"
    assert "set up with ***" in said[1][0]
    assert "applied with ***" in said[1][1]


def test_observers_that_ship_say_what_happens(project):
    enqueue()
    ended = fencepost("worker", "--plugin", "log", "--plugin", "timing", "--follow", "--idle-exit", "0.01")
    said = ended.stderr.decode()
    for part in ("a claimed: attempt 1, fence 1", "count took ", "a completed", "started on ", "stopped"):
        assert part in said
