"""JSON Lines: any length, restartable, errors by the number of their line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from fencepost.core.cli.enqueue import lines as json_lines
from fencepost.core.ledgers.open import capabilities_of

from tests.cli.inprocess import Program, refused, run
from tests.programs import FENCEPOST


@pytest.fixture
def lined(program: Program) -> Program:
    """``fencepost`` on a store that takes JSON Lines; a kind that takes none has no such fixture."""
    assert capabilities_of(program.store).has_line_enqueue
    return program


def record(id: str, text: str = "x") -> bytes:
    return json.dumps({"id": id, "text": text}).encode() + b"\n"


def ids(program: Program) -> list[str]:
    return [job["ID"] for job in program("jobs", "list", "--limit", "10000", "--now-ms", "0")["jobs"]]


def small_requests(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    monkeypatch.setattr(json_lines, "REQUEST_LINES", lines)


def stdin_of(records: Iterable[bytes]) -> bytes:
    return b"".join(records)


def test_a_file_that_ends_in_jsonl_is_read_line_by_line(lined: Program, tmp_path: Path) -> None:
    file = tmp_path / "big.jsonl"
    file.write_bytes(record("a") + b"\n" + record("b").rstrip(b"\n"))
    told = lined("enqueue", "--input", str(file), "--queue", "mail", "--now-ms", "5")
    assert told["enqueued_or_already_present"] == 2
    assert told["store"].endswith(Path(lined.store).name)
    shown = lined("jobs", "list", "--now-ms", "5")["jobs"]
    assert [(job["ID"], job["Queue"], job["EnqueuedAt"]) for job in shown] == [
        ("a", "mail", 5),
        ("b", "mail", 5),
    ]


def test_a_pipe_is_read_line_by_line_where_asked(lined: Program) -> None:
    lined("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=record("a") + record("b"))
    assert ids(lined) == ["a", "b"]


def test_every_request_is_stored_and_all_of_them_count(
    lined: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_requests(monkeypatch, 3)
    names = [f"j{n}" for n in range(10)]
    told = lined("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=stdin_of(map(record, names)))
    assert told["enqueued_or_already_present"] == 10
    assert ids(lined) == names


def test_a_request_is_shorter_where_its_texts_are_long(
    lined: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "REQUEST_BYTES", 100)
    records = [record(f"j{n}", "x" * 60) for n in range(5)]
    lined("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=stdin_of(records))
    assert len(ids(lined)) == 5


def test_the_same_lines_again_change_nothing(lined: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    small_requests(monkeypatch, 2)
    data = record("a") + record("b") + record("c")
    for now_ms, new in (("0", 3), ("9", 0)):
        told = lined("enqueue", "--lines", "--input", "-", "--now-ms", now_ms, stdin=data)
        assert told["enqueued_or_already_present"] == 3
        assert (told["enqueued"], told["already_present"]) == (new, 3 - new)
    assert ids(lined) == ["a", "b", "c"]


@pytest.mark.parametrize("lines", [1, 2, 1_000])
def test_a_line_that_stands_twice_is_one_job_and_the_second_was_there_already(
    lined: Program, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    small_requests(monkeypatch, lines)
    data = record("a") + record("b") + record("a") + record("a")
    told = lined("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=data)
    assert ids(lined) == ["a", "b"]
    assert told["enqueued_or_already_present"] == 4
    assert (told["enqueued"], told["already_present"]) == (2, 2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{\n", "line 3: not one JSON document"),
        (b'{"id": "c"}\n', "line 3: 'text' is missing"),
        (b'{"id": "C", "text": "x"}\n', "line 3: id"),
        (b'{"id": "c", "text": "x", "queue": "mail"}\n', "line 3: the field 'queue' is unknown"),
        (b'[{"id": "c", "text": "x"}]\n', "line 3: must be an object"),
        (b'{"id": "c", "text": "x"} {"id": "d", "text": "x"}\n', "line 3: not one JSON document"),
        (b'{"id": "c", "text": "\xff"}\n', "line 3: not UTF-8"),
        (b'{"id": "a", "text": "changed"}\n', "line 3: the id 'a' is bound to another text in line 1"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_its_request_is_not_stored(
    lined: Program, line: bytes, words: str
) -> None:
    said = lined.refused("enqueue", "--lines", "--input", "-", stdin=record("a") + record("b") + line)
    assert f"stdin: {words}" in said
    listed = run("jobs", "list", "--store", lined.store)
    assert "there is no ledger" in listed.err or json.loads(listed.out)["jobs"] == []


def test_what_was_stored_before_a_wrong_line_stays_and_the_rest_can_follow(
    lined: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_requests(monkeypatch, 2)
    good = [record(id) for id in "abcde"]
    broken = [*good[:4], b"nonsense\n", *good[4:]]
    said = lined.refused("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=stdin_of(broken))
    assert "line 5: not one JSON document" in said
    assert "the 4 records before its request are stored" in said
    assert "run the same command again" in said
    assert ids(lined) == ["a", "b", "c", "d"]
    told = lined("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=stdin_of(good))
    assert told["enqueued_or_already_present"] == 5
    assert ids(lined) == ["a", "b", "c", "d", "e"]


def test_an_id_that_is_bound_already_is_named_by_its_line(lined: Program) -> None:
    lined.enqueue("b")
    data = record("a") + record("b", "another text") + record("c")
    said = lined.refused("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=data)
    assert "stdin: line 2: " in said
    assert "bound to another text" in said
    assert "nothing was stored" in said
    assert ids(lined) == ["b"]


def test_an_id_of_another_effect_is_named_by_its_line(lined: Program) -> None:
    lined.enqueue("b", effect="other")
    data = record("a") + record("b", "text of b")
    said = lined.refused("enqueue", "--lines", "--input", "-", "--now-ms", "0", stdin=data)
    assert "stdin: line 2: " in said


def test_no_records_at_all_are_refused(lined: Program) -> None:
    assert "holds no records" in lined.refused("enqueue", "--lines", "--input", "-", stdin=b"\n \n")


def test_a_line_longer_than_a_document_is_refused(lined: Program) -> None:
    line = b'{"id": "a", "text": "' + b"x" * 4_200_000 + b'"}\n'
    said = lined.refused("enqueue", "--lines", "--input", "-", stdin=line)
    assert "line 1: more than 4,194,304 bytes" in said


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    said = refused("enqueue", "--store", str(tmp_path / "a.db"), "--input", str(tmp_path / "nix.jsonl"))
    assert "No such file" in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_takes_no_lines_and_is_not_made(tmp_path: Path) -> None:
    ended = run("enqueue", "--store", str(tmp_path / "folder"), "--lines", "--input", "-", stdin=record("a"))
    assert ended.status == 1
    assert "need an SQL ledger (--store jobs.db" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_memory_stays_flat_however_many_lines_there_are(tmp_path: Path) -> None:
    def peak_kib(count: int) -> int:
        script = (
            "import resource, sys; from fencepost.core.cli import main\n"
            "try:\n    main(sys.argv[1:])\n"
            "finally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        )
        file = tmp_path / f"{count}.jsonl"
        with file.open("wb") as out:
            out.writelines(record(f"job-{n}", f"text {n} " + "x" * 200) for n in range(count))
        ended = subprocess.run(
            [
                FENCEPOST[0],
                "-c",
                script,
                "enqueue",
                "--store",
                str(tmp_path / f"{count}.db"),
                "--input",
                str(file),
            ],
            capture_output=True,
            check=True,
            timeout=300,
        )
        assert json.loads(ended.stdout)["enqueued_or_already_present"] == count
        return int(ended.stderr)

    few, many = peak_kib(10_000), peak_kib(60_000)
    # 50,000 records more are 12 MB of text alone; SQLite's own page cache may still grow a little.
    assert many - few < 6_000
