"""What the program says when something is wrong: what it is, where, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.core import InvalidInput, open_ledger

from tests.cli.inprocess import refused, run

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
