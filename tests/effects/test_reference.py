"""docs/reference/receiver.md names every setting, row and name that there is, and none that there is not."""

import re
from pathlib import Path

import fencepost.effects.receiver as library
import httpx
from fencepost.effects.receiver.check import Check
from fencepost.effects.receiver.protocol import MAX_ANSWER_BYTES
from fencepost.effects.receiver.service import MAX_BODY_BYTES
from fencepost.effects.remote.settings import MAX_ANSWER_BYTES as MAX_TAKEN_BYTES
from fencepost.effects.remote.settings import SETTINGS

PAGE = (Path(__file__).parents[2] / "docs/reference/receiver.md").read_text("utf-8")


def section(title):
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def names_in_first_column(text):
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w[\w-]*)", row)}


def test_the_settings():
    table = section("The effect `remote`").partition("\n1. ")[0]
    assert names_in_first_column(table) == {*SETTINGS, "namespace"}


def test_the_rows_of_the_check():
    with httpx.Client() as client:
        names = [name for name, _, _ in Check(client, "http://127.0.0.1")._plays()]
    table = section("Commands").partition("| row |")[2]
    assert names_in_first_column(table) == set(names)


def test_the_names_of_the_library():
    missing = {name for name in library.__all__ if name not in PAGE}
    assert missing == {"CONTRACT_VERSION", "MAX_ANSWER_BYTES", "WELL_KNOWN"}
    assert library.WELL_KNOWN in PAGE
    assert f'"fencepost_receiver": {library.CONTRACT_VERSION}' in PAGE


def test_both_halves_have_the_same_bounds():
    assert MAX_ANSWER_BYTES == MAX_TAKEN_BYTES == 60_000
    assert SETTINGS["max_body_bytes"].default == MAX_BODY_BYTES
    assert f"{MAX_ANSWER_BYTES:,} bytes" in PAGE
