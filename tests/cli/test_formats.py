"""A file that holds no request is told by its format, with the way to a request."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile
from pathlib import Path

import pytest

from tests.cli.inprocess import refused, run

ARRAY = b'[{"id": "a", "text": "x"}]'
LINES = b'{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("jobs.json", data)
    return out.getvalue()


def database(folder: Path) -> bytes:
    file = folder / "some.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE some (thing)")
    connection.close()
    return file.read_bytes()


FORMATS = {
    "gzip": (gzip.compress(ARRAY), "it is compressed with gzip: unpack it first"),
    "bzip2": (bz2.compress(ARRAY), "it is compressed with bzip2"),
    "xz": (lzma.compress(ARRAY), "it is compressed with xz"),
    "zip": (zipped(ARRAY), "it is a ZIP archive"),
    "utf-16": (ARRAY.decode().encode("utf-16"), "it is UTF-16, not UTF-8: save it as UTF-8"),
    "utf-16 without its mark": (ARRAY.decode().encode("utf-16-le"), "it is UTF-16, not UTF-8"),
    "utf-16, the large end first": (LINES.decode().encode("utf-16-be"), "it is UTF-16, not UTF-8"),
    "csv": (b"id,text\na,x\nb,y\n", "it is CSV, not JSON: make each row an object"),
    "csv with semicolons": (b"id;text\na;x\n", "it is CSV"),
    "tab-separated": (b"id\ttext\na\tx\n", "it is CSV"),
    "csv of a spreadsheet": (b'\xef\xbb\xbf"id","text"\r\n"a","x"\r\n', "it is CSV"),
}


@pytest.mark.parametrize("option", [[], ["--lines"]], ids=["array", "lines"])
@pytest.mark.parametrize(("data", "said"), FORMATS.values(), ids=FORMATS)
def test_another_format_is_named(tmp_path: Path, data: bytes, said: str, option: list[str]) -> None:
    file = tmp_path / "jobs.json"
    file.write_bytes(data)
    store = str(tmp_path / "jobs.db")
    assert f"{file}: {said}" in refused("enqueue", "--store", store, "--input", str(file), *option)
    assert f"stdin: {said}" in refused("enqueue", "--store", store, "--input", "-", *option, stdin=data)
    assert not (tmp_path / "jobs.db").exists()


def test_a_store_given_as_the_input_is_taken_for_one(tmp_path: Path) -> None:
    data = database(tmp_path)
    assert "it is a SQLite file, not a request: did you mean --store?" in refused(
        "enqueue", "--store", str(tmp_path / "jobs.db"), "--input", "-", stdin=data
    )


def test_json_lines_without_the_option_are_told_of_it(tmp_path: Path) -> None:
    store = str(tmp_path / "jobs.db")
    said = refused("enqueue", "--store", store, "--input", "-", stdin=LINES)
    assert "stdin: it is JSON Lines, one record a line: say --lines" in said
    assert run("enqueue", "--store", store, "--input", "-", "--lines", stdin=LINES).status == 0


def test_an_array_with_the_option_of_lines_is_told_to_leave_it_out(tmp_path: Path) -> None:
    said = refused("enqueue", "--store", str(tmp_path / "jobs.db"), "--input", "-", "--lines", stdin=ARRAY)
    assert "stdin: it is a JSON array: leave --lines out" in said


@pytest.mark.parametrize(
    "data", [b"Dear reader\n", b"{'id': 'a'}", b'[{"id": "a", "text": "x"}', b"\x00\x01\x02"]
)
def test_what_is_of_no_known_format_is_told_by_its_first_fault(tmp_path: Path, data: bytes) -> None:
    said = refused("enqueue", "--store", str(tmp_path / "jobs.db"), "--input", "-", stdin=data)
    assert "stdin: not one JSON document" in said
