"""What the program says when something is wrong: what it is, where, and what to do about it."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from fencepost.core import InvalidInput, LedgerCorrupt, open_ledger

from tests.cli.inprocess import Program, refused, run
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
        ("a" * 300, "File name too long; name another store"),
        ("b/" * 3_000 + "jobs.db", "File name too long; name another store"),
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


def test_a_server_that_cannot_be_reached_comes_with_advice_and_without_the_password() -> None:
    said = refused("status", "--store", "postgresql://me:secret@127.0.0.1:1/jobs")
    assert "check the URL, and that the server runs" in said
    assert "secret" not in said


def test_a_folder_whose_name_ends_in_db_is_a_store_when_a_slash_follows(here: Path) -> None:
    (here / "folder.db").mkdir()
    ended = run("enqueue", "--input", "-", "--store", "folder.db/", stdin=ONE)
    assert json.loads(ended.out)["store"] == f"{here}/folder.db/"


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


# -- options --


def test_the_advice_on_a_time_without_its_zone_works() -> None:
    for given, example in (
        ("2026-12-31", "2026-12-31T00:00Z"),
        ("2026-12-31T06:00", "2026-12-31T06:00Z"),
        ("2026-12-31 06:00:01", "2026-12-31T06:00:01Z"),
    ):
        said = enqueue_refused("--run-at", given)
        assert said.endswith(f"name the time zone, for example {example}\n")
        assert run("enqueue", "--input", "-", "--run-at", example, "--store", example, stdin=ONE).status == 0


def test_a_number_of_the_wrong_kind_is_refused_in_plain_words() -> None:
    for option, value, kind in (
        ("--now-ms", "1.5", "whole number"),
        ("--priority", "x", "whole number"),
    ):
        assert f"'{option}': '{value}' is not a valid {kind}." in enqueue_refused(option, value)
    assert "'--limit': 'x' is not a valid whole number." in refused("jobs", "list", "--limit", "x")


@pytest.mark.parametrize("now_ms", [str(2**53), "99999999999999999999", "-2"])
def test_a_logical_clock_has_the_same_bounds_in_every_command(now_ms: str) -> None:
    assert run("enqueue", "--input", "-", "--now-ms", str(2**53 - 1), stdin=ONE).status == 0
    for command in (("enqueue", "--input", "-"), ("worker",), ("jobs", "list"), ("sweep",)):
        said = refused(*command, "--now-ms", now_ms, stdin=ONE)
        assert "is not in the range -1<=x<=9007199254740991" in said


def test_max_jobs_does_not_go_with_follow() -> None:
    assert "--max-jobs is for bounded runs" in refused("worker", "--follow", "--max-jobs", "1")


def test_a_job_that_could_never_run_is_refused(here: Path) -> None:
    assert "--expires-in is 0, it must be more than 0" in enqueue_refused("--expires-in", "0")
    assert list(here.iterdir()) == []
    assert run("enqueue", "--input", "-", "--expires-in", "0.001", stdin=ONE).status == 0


# -- records --


def test_an_error_of_a_record_names_its_file_and_one_of_an_option_does_not(here: Path) -> None:
    (here / "in.json").write_bytes(b'[{"id":"a","text":"b"},{"id":"a","text":"b"}]')
    twice = refused("enqueue", "--input", "in.json")
    assert twice == "fencepost: in.json: record 2 (id 'a'): the id stands already in record 1\n"
    assert enqueue_refused("--priority", str(2**31)).startswith("fencepost: priority is 2147483648, it must")


@pytest.mark.parametrize("room", ["inputs", "effects"])
@pytest.mark.parametrize("data", ["", "{", "[]"])
def test_a_corrupt_file_is_named_once_with_what_to_do(room: str, data: str, here: Path) -> None:
    program = Program("store")
    program.enqueue("a")
    if room == "effects":
        program.complete()
    file = here / "store" / room / "a.json"
    file.chmod(0o600)
    file.write_text(data)
    with program.ledger() as ledger, pytest.raises(LedgerCorrupt) as caught:
        ledger.read_inputs(["a"]) if room == "inputs" else ledger.receipts(["a"])
    said = str(caught.value)
    assert said.count(str(file)) == 1
    assert "estore it from a copy" in said
    if room == "effects":
        assert "`fencepost doctor` checks the rest" in said


def shell(words: str) -> subprocess.CompletedProcess[bytes]:
    """Run ``fencepost`` with the redirections of a shell."""
    command = f"{shlex.join(FENCEPOST)} {words}"
    return subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
    )
