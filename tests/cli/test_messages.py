"""What the program says when something is wrong: what it is, where, and what to do about it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from fencepost.core import InvalidInput, open_ledger

from tests.cli.inprocess import refused, run
from tests.programs import FENCEPOST

ONE = b'[{"id":"a","text":"b"}]'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of its own, in which the default store would be made."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def enqueue_refused(*options: str, stdin: bytes = ONE) -> str:
    return refused("enqueue", "--input", "-", *options, stdin=stdin)


# -- the name of the store --


@pytest.mark.parametrize("command", [("status",), ("worker",), ("doctor",), ("jobs", "list"), ("enqueue",)])
def test_an_empty_name_of_a_store_is_not_the_default_store(command: tuple[str, ...], here: Path) -> None:
    rest = ("--input", "-") if command == ("enqueue",) else ()
    assert "the store has no name" in refused(*command, "--store", "", *rest, stdin=ONE)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sqlite:", "names no file; write sqlite:PATH"),
        ("sqlite:///abs.db", "no //); write sqlite:/abs.db for an absolute path, or sqlite:abs.db for one"),
        ("sqlite:////tmp/abs.db", "write sqlite:/tmp/abs.db for an absolute path"),
    ],
)
def test_a_name_that_looks_like_a_url_is_told_how_to_be_written(name: str, said: str) -> None:
    assert said in enqueue_refused("--store", name)
    with pytest.raises(InvalidInput):
        open_ledger(name)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("link", "link: is a link to nowhere, which does not exist: make that, or remove the link"),
        ("link.db", "link.db: is a link to nowhere, which does not exist"),
        ("link/jobs.db", "link: is a link to nowhere, which does not exist"),
        ("file/x", "file/x: cannot be made, because"),
        ("file/x.db", "file is a file; name another store"),
        ("folder.db", "folder.db: is a folder, but this name means a SQLite file"),
        (
            "text.db",
            "not a SQLite database (file is not a database); nothing was changed. If it never was one",
        ),
    ],
)
def test_what_stands_where_a_ledger_should_be_is_named(store: str, said: str, here: Path) -> None:
    for link in ("link", "link.db"):
        (here / link).symlink_to("nowhere")
    (here / "file").write_text("a file")
    (here / "folder.db").mkdir()
    (here / "text.db").write_text("a text")
    before = sorted(here.rglob("*"))
    assert said in refused("status", "--store", store)
    assert said in enqueue_refused("--store", store)
    assert sorted(here.rglob("*")) == before


def test_a_folder_whose_name_ends_in_db_is_a_store_when_a_slash_follows(here: Path) -> None:
    (here / "folder.db").mkdir()
    ended = run("enqueue", "--input", "-", "--store", "folder.db/", stdin=ONE)
    assert json.loads(ended.out)["store"] == str(here / "folder.db")


# -- stdout and stdin --

CHATTY = """
import fencepost.plugins as plugins

print("chatty: imported")


@plugins.hookimpl
def effect_info():
    return plugins.EffectInfo(name="chatty", summary="Talks.", delivery="local")


@plugins.hookimpl
def effect_validate(text):
    print("chatty: validating")


@plugins.hookimpl
def effect_apply(request):
    print("chatty: applying")
    if request.text == "fail":
        raise SystemExit("no")
    return {}
"""


@pytest.mark.parametrize("follow", [False, True], ids=["bounded", "follow"])
def test_what_a_plugin_prints_goes_to_stderr(here: Path, follow: bool) -> None:
    (here / "chatty.py").write_text(CHATTY)
    mine = ("--effect", "chatty", "--plugin", "chatty.py")
    stored = run("enqueue", "--input", "-", *mine, stdin=ONE)
    assert json.loads(stored.out)["enqueued_or_already_present"] == 1
    assert "chatty: validating" in stored.err
    worked = run("worker", *mine, *(("--follow", "--idle-exit", "0.01") if follow else ()))
    events = [json.loads(worked.out)] if follow else json.loads(worked.out)["events"]
    assert [(event["id"], event["state"]) for event in events] == [("a", "completed")]
    assert "chatty: applying" in worked.err
    listed = run("plugins", "--json", "--plugin", "chatty.py")
    assert "chatty" in [row["effect"] for row in json.loads(listed.out)["plugins"]]


def test_stdout_stays_empty_where_a_plugin_prints_and_then_fails(here: Path) -> None:
    (here / "chatty.py").write_text(CHATTY + "\nraise RuntimeError('broken')\n")
    assert "chatty: imported" in enqueue_refused("--effect", "chatty", "--plugin", "chatty.py")


@pytest.mark.parametrize("command", ["status", "worker", "plugins", "--version"])
def test_a_closed_stdout_is_named_before_anything_is_done(command: str, here: Path) -> None:
    ended = shell(f"{command} >&-")
    assert ended.returncode == 1
    assert b"stdout is closed; nothing was done" in ended.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "plugins", "plugins doctor", "--version"])
def test_a_stdout_that_takes_no_more_is_named(command: str) -> None:
    ended = shell(f"{command} >/dev/full")
    assert ended.returncode == 1
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith(
        "fencepost: stdout cannot be written: No space left on device; what was done stays"
    )


def test_what_was_done_stays_done_where_stdout_takes_no_more(here: Path) -> None:
    (here / "in.json").write_bytes(ONE)
    assert shell("enqueue --input in.json >/dev/full").returncode == 1
    following = shell("worker --follow --idle-exit 0.01 >/dev/full")
    assert (following.returncode, b"stdout cannot be written" in following.stderr) == (1, True)
    assert json.loads(run("status").out)["jobs"][0]["State"] == "completed"


def test_a_closed_stdin_is_named() -> None:
    ended = shell("enqueue --input - <&-")
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"stdin is closed: name a file" in ended.stderr


def test_a_closed_stderr_puts_nothing_on_stdout() -> None:
    ended = shell("status --store '' 2>&-")
    assert (ended.returncode, ended.stdout) == (1, b"")


def shell(words: str) -> subprocess.CompletedProcess[bytes]:
    """Run ``fencepost`` with the redirections of a shell."""
    command = f"{shlex.join(FENCEPOST)} {words}"
    return subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
    )
