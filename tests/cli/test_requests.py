"""What ``enqueue`` takes and refuses: every rule of contract §3 at its edge, through the program itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.programs import document, fencepost, refused

LIMIT = 4_194_304


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def enqueue(store: Path, tmp_path: Path) -> Callable[..., Any]:
    def run(data: bytes, *options: str) -> Any:
        (tmp_path / "in.json").write_bytes(data)
        return document("enqueue", "--store", store, "--input", tmp_path / "in.json", *options)

    return run


@pytest.fixture
def refuse(store: Path, tmp_path: Path) -> Callable[..., str]:
    def run(data: bytes, *options: str) -> str:
        (tmp_path / "in.json").write_bytes(data)
        said = refused("enqueue", "--store", store, "--input", tmp_path / "in.json", *options)
        assert not store.exists(), "a refused request makes no store"
        return said

    return run


def records(*values: Any) -> bytes:
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "in.json: not one JSON document: it is empty"),
        (b"  \n", "not one JSON document: it holds only blanks"),
        (b"\xef\xbb\xbf" + records({"id": "a", "text": "b"}), "byte order mark"),
        (b'[{"id":"a","text":"\xff"}]', "not UTF-8"),
        ("[]".encode("utf-16"), "not UTF-8"),
        (records({"id": "a", "text": "b"}) + b" 1", "second document"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"NaN", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[1e999]", "too large"),
        (b"[" + b"9" * 5_000 + b"]", "a whole number in it is too long"),
        (b'[{"id":"a","id":"a","text":"b"}]', "'id' stands twice"),
        (b'[{"id":"a","text":"b","x":1}]', "'x' is unknown"),
        (b'[{"id":"a"}]', "'text' is missing"),
        (b'[{"text":"a"}]', "'id' is missing"),
        (b'[{"id":null,"text":"b"}]', "'id' must be a string, not null"),
        (b'[["a","b"]]', "must be an object"),
        (b"[]", "no records"),
        (b'"a"', "must be a JSON array"),
        (records({"id": "a" * 65, "text": ""}), "must match"),
        (records({"id": "", "text": ""}), "must match"),
        (records({"id": "a\n", "text": ""}), "must match"),
        (records({"id": "1a", "text": ""}), "must match"),
        (records({"id": "-a", "text": ""}), "must match"),
        (records({"id": "a_b", "text": ""}), "must match"),
        (records({"id": "é", "text": ""}), "must match"),
        (records({"id": "ａ", "text": ""}), "must match"),
        (records({"id": "a", "text": "\ud800"}), "lone surrogate"),
        (b'[{"id":"a","text":"\\udc00"}]', "lone surrogate"),
        (records({"id": "a", "text": "é" * 500_000 + "a"}), "1,000,001 UTF-8 bytes"),
        (records({"id": "b", "text": ""}, {"id": "a", "text": 3}), "record 2"),
        (records({"id": "same", "text": "x"}, {"id": "same", "text": "x"}), "already in record 1"),
        (records(*({"id": f"r{n}", "text": ""} for n in range(10_001))), "10,001 records"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_a_request_that_breaks_a_rule_is_refused_whole(
    refuse: Callable[..., str], data: bytes, said: str
) -> None:
    assert said in refuse(data)


def test_a_request_may_hold_10000_records(enqueue: Callable[..., Any]) -> None:
    data = records(*({"id": f"r{n}", "text": ""} for n in range(10_000)))
    assert enqueue(data)["enqueued_or_already_present"] == 10_000


def test_a_document_may_have_4_mib_and_not_a_byte_more(
    enqueue: Callable[..., Any], refuse: Callable[..., str]
) -> None:
    data = records({"id": "a", "text": "b"})
    assert "more than 4,194,304 bytes" in refuse(data + b" " * (LIMIT + 1 - len(data)))
    assert enqueue(data + b"\n" * (LIMIT - len(data)))["enqueued_or_already_present"] == 1


def test_text_comes_back_byte_for_byte(enqueue: Callable[..., Any], store: Path) -> None:
    text = '\0 \x1f\u2028 é \U0001f980 \r\n\t\\" \ufeff'
    enqueue(records({"id": "a", "text": text}))
    assert json.loads((store / "inputs/a.json").read_text("utf-8")) == {"id": "a", "text": text}


def test_stdin_is_read_where_the_input_is_a_dash(store: Path) -> None:
    printed = document("enqueue", "--store", store, "--input", "-", stdin=records({"id": "a", "text": "b"}))
    assert printed == {"enqueued_or_already_present": 1, "store": str(store)}


@pytest.mark.parametrize(
    "options",
    [
        ("--priority", "2147483648"),
        ("--priority", "-2147483649"),
        ("--priority", "1.5"),
        ("--queue", "Mail"),
        ("--queue", "a" * 65),
        ("--effect", "a b"),
        ("--run-at", "-1"),
        ("--run-at", "tomorrow"),
        ("--run-at", "20261231"),
        ("--run-at", "19991301"),
        ("--run-at", "2026-01-01T00:00"),
        ("--delay", "-0.001"),
        ("--delay", "nan"),
        ("--expires-in", "inf"),
        ("--max-attempts", "0"),
        ("--visibility-timeout", "0"),
        ("--backoff-base", "0"),
        ("--backoff-base", "nan"),
        ("--dead-letter-retention", "-1"),
        ("--frobnicate",),
    ],
    ids=" ".join,
)
def test_an_option_out_of_its_range_is_refused_and_makes_no_store(
    refuse: Callable[..., str], options: tuple[str, ...]
) -> None:
    refuse(records({"id": "a", "text": "b"}), *options)


def test_options_become_fields_of_every_record(enqueue: Callable[..., Any], store: Path) -> None:
    enqueue(
        records({"id": "a", "text": "x"}, {"id": "b", "text": "y"}),
        *(
            "--queue",
            "mail",
            "--priority",
            "-2147483648",
            "--delay",
            "1.5",
            "--run-at",
            "7",
            "--expires-in",
            "60",
        ),
        *("--visibility-timeout", "0.07", "--max-attempts", "5", "--backoff-base", "0.0001"),
        *("--dead-letter-retention", "0", "--now-ms", "1000"),
    )
    options = {
        "Queue": "mail",
        "Priority": -2147483648,
        "RunAt": 2500,
        "ExpiresAt": 61000,
        "VisibilityTimeout": 70,
        "MaxAttempts": 5,
        "BackoffBase": 1,
        "DeadLetterRetention": 0,
    }
    five = {"State": "queued", "Version": 0, "LeaseUntil": 0, "Attempts": 0}
    jobs = json.loads((store / "jobs.json").read_text("utf-8"))
    assert jobs == [{"ID": id} | five | options for id in ("a", "b")]
    assert list(jobs[0])[:5] == ["ID", "State", "Version", "LeaseUntil", "Attempts"]
    assert document("status", "--store", store)["jobs"] == jobs


@pytest.mark.parametrize(
    "when", ["2026-12-31T06:00:00.250Z", "2026-12-31T07:00:00.250+01:00", "1798696800250"]
)
def test_run_at_takes_a_time_with_its_zone_or_milliseconds(
    enqueue: Callable[..., Any], store: Path, when: str
) -> None:
    enqueue(records({"id": "a", "text": "x"}), "--run-at", when)
    assert json.loads((store / "jobs.json").read_text("utf-8"))[0]["RunAt"] == 1798696800250


def test_an_effect_that_is_not_installed_is_accepted_with_a_warning(store: Path) -> None:
    ended = fencepost(
        *("enqueue", "--store", store, "--input", "-", "--effect", "elsewhere"),
        stdin=records({"id": "a", "text": "b"}),
    )
    assert ended.returncode == 0
    assert b"no effect 'elsewhere' is installed here" in ended.stderr
    ended = fencepost("worker", "--store", store)
    assert (ended.returncode, json.loads(ended.stdout)["events"]) == (0, [])
    assert b"not loaded: elsewhere" in ended.stderr


def test_another_effect_for_a_known_id_is_a_conflict(enqueue: Callable[..., Any], store: Path) -> None:
    data = records({"id": "a", "text": "b"})
    enqueue(data)
    said = refused("enqueue", "--store", store, "--input", "-", "--effect", "other", stdin=data)
    assert "has the effect 'count', not 'other'" in said
