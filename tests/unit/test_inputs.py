"""Contract §3, each rule at its edge: names, texts, figures, and requests whole or not at all."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from fencepost.core import (
    Input,
    InvalidInput,
    Job,
    LimitExceeded,
    NewJob,
    Stamps,
)
from fencepost.core.model import inputs as rules
from fencepost.core.model.checks import check_int
from hypothesis import given
from hypothesis import strategies as st

GOOD_NAMES = ["a", "z", "a-", "a--b", "a0", "report-1", "a" + "b" * 63, "z" + "-9" * 31 + "x"]
BAD_NAMES = {
    "empty": "",
    "65 characters": "a" + "b" * 64,
    "trailing newline": "a\n",
    "leading newline": "\na",
    "trailing carriage return": "a\r",
    "trailing nul": "a\0",
    "blank": "a b",
    "digit first": "1a",
    "hyphen first": "-a",
    "upper case": "Report",
    "underscore": "a_b",
    "full stop": "a.b",
    "slash": "a/b",
    "letter with an accent": "é",
    "letter that folds to ASCII": "ſtate",
    "kelvin sign": "\u212a",
    "full-width letter": "ａ",
    "arabic digit": "a١",
    "lone surrogate": "a\ud800",
}
NOT_STRINGS = [None, 1, 1.5, True, b"a", ["a"], {"a": 1}]
MOST = 2**53 - 1
CENTURY_S = 100 * 365 * 86_400


# -- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_name_is_a_letter_and_up_to_63_more(name: str) -> None:
    assert rules.is_name(name)
    assert rules.check_name(name, "id") == name


@pytest.mark.parametrize(
    "name", [*BAD_NAMES.values(), *NOT_STRINGS], ids=[*BAD_NAMES, *map(repr, NOT_STRINGS)]
)
def test_anything_else_is_no_name(name: Any) -> None:
    assert not rules.is_name(name)
    with pytest.raises(InvalidInput, match=r"^queue .*must match \[a-z\]\[a-z0-9-\]\{0,63\}"):
        rules.check_name(name, "queue")


@given(st.text(max_size=3))
def test_names_are_ascii_only(name: str) -> None:
    assert rules.is_name(name) is (
        len(name) > 0
        and name[0] in "abcdefghijklmnopqrstuvwxyz"
        and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    )


def test_an_error_shows_a_long_name_in_part_and_no_control_character() -> None:
    with pytest.raises(InvalidInput) as raised:
        rules.check_name("x" * 100_000 + "\n\x1b[31m", "id")
    assert len(str(raised.value)) < 300
    with pytest.raises(InvalidInput) as raised:
        rules.check_name("\x1b[31m\n\u202eabc", "id")
    assert str(raised.value).isascii()
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("length", [1, 50])
def test_a_schedule_name_has_up_to_50_characters(length: int) -> None:
    assert rules.check_schedule_name("s" * length) == "s" * length


def test_a_schedule_name_of_51_characters_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="51 characters, at most 50"):
        rules.check_schedule_name("s" * 51)


@pytest.mark.parametrize("name", ["", "S", "s\n", 5])
def test_a_schedule_name_is_a_name(name: Any) -> None:
    with pytest.raises(InvalidInput, match="schedule name"):
        rules.check_schedule_name(name)


# -- texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "\0", "x" * 1_000_000, "é" * 500_000, "€" * 333_333 + "x", "\U0001f641" * 250_000, "\0" * 1_000_000],
    ids=["empty", "nul", "ascii", "two bytes", "three bytes", "four bytes", "nuls"],
)
def test_a_text_has_up_to_1_000_000_bytes(text: str) -> None:
    assert rules.check_text(text) is text


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_001, "é" * 500_000 + "x", "€" * 333_333 + "xx", "\U0001f641" * 250_000 + "x"],
    ids=["ascii", "two bytes", "three bytes", "four bytes"],
)
def test_a_text_of_1_000_001_bytes_is_refused_however_few_its_characters(text: str) -> None:
    with pytest.raises(LimitExceeded, match=r"1,000,001 UTF-8 bytes, at most 1,000,000"):
        rules.check_text(text)


@pytest.mark.parametrize("surrogate", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_a_lone_surrogate_is_refused_with_its_place(surrogate: int) -> None:
    with pytest.raises(InvalidInput, match="lone surrogate at character 3"):
        rules.check_text(f"abc{chr(surrogate)}def")


@pytest.mark.parametrize("value", [None, 1, True, b"text", ["text"], {}])
def test_a_text_is_a_string(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^note must be a string"):
        rules.check_text(value, "note")


@given(st.text())
def test_any_text_that_utf_8_can_carry_is_taken(text: str) -> None:
    assert rules.check_text(text) == text


def test_the_digest_is_that_of_the_utf_8_bytes() -> None:
    text = "a\0é𝔘"
    assert rules.text_sha256(text) == hashlib.sha256(text.encode()).hexdigest()
    assert Input("a", text).sha256 == rules.text_sha256(text)
    assert rules.text_sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


# -- figures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, MOST])
def test_a_figure_is_0_or_more(value: int) -> None:
    assert check_int(value, "run_at_ms") == value


@pytest.mark.parametrize(
    "value",
    [-1, MOST + 1, 2**63, 10**5_000, -(10**5_000)],
    ids=["-1", "most + 1", "2**63", "10**5000", "-10**5000"],
)
def test_a_figure_out_of_bounds_is_refused_by_name(value: int) -> None:
    with pytest.raises(InvalidInput, match=r"^run_at_ms .*between 0 and 9007199254740991") as raised:
        check_int(value, "run_at_ms")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, float("nan"), [1]])
def test_a_figure_is_a_whole_number_and_no_boolean(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^run_at_ms must be a whole number"):
        check_int(value, "run_at_ms")


@pytest.mark.parametrize("value", [-(2**31), -1, 0, 2**31 - 1])
def test_a_priority_has_32_bits(value: int) -> None:
    assert rules.check_job(NewJob("a", "", priority=value)).priority == value


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31, True, False, 0.0, "0", None])
def test_any_other_priority_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^priority"):
        rules.check_job(NewJob("a", "", priority=value))


@pytest.mark.parametrize("field", ["run_at_ms", "expires_at_ms"])
@pytest.mark.parametrize("value", [-1, MOST + 1, 1.0, True, "1"])
def test_an_instant_that_is_none_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}"):
        rules.check_job(NewJob("a", "", **{field: value}))


@pytest.mark.parametrize("field", ["run_at_ms", "expires_at_ms"])
@pytest.mark.parametrize("value", [None, 0, MOST])
def test_an_instant_is_0_or_more_or_not_given(field: str, value: int | None) -> None:
    rules.check_job(NewJob("a", "", **{field: value}))  # type: ignore[arg-type]


# -- stamps ---------------------------------------------------------------------------------------------------

SECONDS = ["visibility_timeout_s", "backoff_base_s", "dead_letter_retention_s"]


@pytest.mark.parametrize("field", SECONDS)
@pytest.mark.parametrize("value", [5e-324, 0.001, 1, 1.5, CENTURY_S, None])
def test_a_stamp_is_seconds_more_than_0(field: str, value: float | None) -> None:
    stamps = Stamps(**{field: value})  # type: ignore[arg-type]
    assert rules.check_stamps(stamps) is stamps


def test_a_retention_may_be_0() -> None:
    rules.check_stamps(Stamps(dead_letter_retention_s=0))
    rules.check_stamps(Stamps(dead_letter_retention_s=0.0))


@pytest.mark.parametrize("field", ["visibility_timeout_s", "backoff_base_s"])
@pytest.mark.parametrize("value", [0, 0.0, -0.0])
def test_no_other_stamp_may_be_0(field: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=f"^{field} .*more than 0"):
        rules.check_stamps(Stamps(**{field: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize("field", SECONDS)
@pytest.mark.parametrize(
    "value",
    [
        -1,
        -5e-324,
        float("nan"),
        float("inf"),
        float("-inf"),
        1e300,
        CENTURY_S + 1,
        10**400,
        10**5_000,
        True,
        "1",
        [1],
    ],
    ids=[
        "-1",
        "-5e-324",
        "nan",
        "inf",
        "-inf",
        "1e300",
        "more than a century",
        "10**400",
        "10**5000",
        "True",
        "text",
        "list",
    ],
)
def test_a_stamp_that_is_no_such_number_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}") as raised:
        rules.check_stamps(Stamps(**{field: value}))
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", MOST + 1])
def test_attempts_are_1_or_more_whole(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^max_attempts"):
        rules.check_stamps(Stamps(max_attempts=value))


@pytest.mark.parametrize("value", [None, 1, MOST])
def test_attempts_have_no_other_bound(value: int | None) -> None:
    rules.check_stamps(Stamps(max_attempts=value))


@pytest.mark.parametrize("value", [None, 0, 0.0, 5e-324, 1.5, CENTURY_S])
def test_a_span_is_0_seconds_or_more_or_not_given(value: float | None) -> None:
    assert rules.check_seconds(value, "delay") == value


@pytest.mark.parametrize("value", [-1, -5e-324, float("nan")], ids=str)
def test_any_other_span_is_refused_by_name(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"^delay is .*0 or more"):
        rules.check_seconds(value, "delay")


@pytest.mark.parametrize("value", [float("inf"), 1e300, MOST, CENTURY_S + 1], ids=str)
def test_a_span_of_more_than_100_years_is_refused_by_name(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"^delay is .*: more seconds than the 3,153,600,000 of 100 years"):
        rules.check_seconds(value, "delay")


# -- jobs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["id", "queue", "effect"])
@pytest.mark.parametrize("bad", BAD_NAMES.values(), ids=BAD_NAMES)
def test_ids_queues_and_effects_are_names(field: str, bad: str) -> None:
    given = {"id": "a", "text": "", field: bad}
    with pytest.raises(InvalidInput, match=f"^{field} "):
        rules.check_job(NewJob(**given))


def test_a_job_of_defaults_is_valid() -> None:
    job = NewJob("a", "text")
    assert rules.check_job(job) is job


def test_a_job_is_queued_as_it_was_given() -> None:
    new = NewJob("a", "text", "mail", "send", -5, 7, 8, Stamps(0.0001, 1, 2, 3))
    assert new.queued(enqueued_at_ms=9, version=4) == Job(
        "a",
        version=4,
        queue="mail",
        effect="send",
        priority=-5,
        run_at_ms=7,
        expires_at_ms=8,
        enqueued_at_ms=9,
        stamps=Stamps(0.001, 1, 2, 3),
    )
    assert NewJob("a", "text").queued(enqueued_at_ms=None) == Job("a")


# -- requests -------------------------------------------------------------------------------------------------


def many(count: int) -> list[NewJob]:
    return [NewJob(f"job-{n}", "x") for n in range(count)]


@pytest.mark.parametrize("count", [1, 10_000])
def test_a_request_has_1_to_10_000_records(count: int) -> None:
    request = many(count)
    assert rules.check_request(iter(request)) == tuple(request)


def test_a_request_that_was_checked_is_taken_as_it_is() -> None:
    request = rules.check_request(many(2))
    assert rules.check_request(request) is request


def test_a_request_of_10_001_records_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="10,001 records, at most 10,000"):
        rules.check_request(many(10_001))


def test_a_request_without_records_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no records"):
        rules.check_request([])


def test_an_error_names_the_record_by_place_and_id_and_the_rule() -> None:
    with pytest.raises(InvalidInput, match=r"^record 3 \(id 'c'\): priority .*between"):
        rules.check_request([NewJob("a", ""), NewJob("b", ""), NewJob("c", "", priority=2**31)])
    with pytest.raises(LimitExceeded, match=r"^record 2 \(id 'b'\): text has 1,000,001"):
        rules.check_request([NewJob("a", ""), NewJob("b", "x" * 1_000_001)])
    with pytest.raises(InvalidInput, match=r"^record 1: id 'B': must match"):
        rules.check_request([NewJob("B", "")])


@pytest.mark.parametrize("bad_id", [5, None])
def test_an_id_that_is_no_string_is_named_by_its_place(bad_id: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^record 1: id "):
        rules.check_request([NewJob(bad_id, "")])


@pytest.mark.parametrize("text", ["same", "other"])
def test_ids_are_distinct_within_a_request(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^record 3 \(id 'a'\): .* record 1"):
        rules.check_request([NewJob("a", "same"), NewJob("b", ""), NewJob("a", text)])


# -- request documents ----------------------------------------------------------------------------------------


def document(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_document_is_an_array_of_records() -> None:
    data = '[{"id": "a", "text": "é\\u0000"}, {"text": "", "id": "b"}]'.encode()
    assert rules.parse_request(data, what="jobs.json") == [Input("a", "é\0"), Input("b", "")]


@pytest.mark.parametrize("value", [{}, {"id": "a", "text": ""}, "text", 1, None, True])
def test_any_other_document_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^jobs.json: must be a JSON array"):
        rules.parse_request(document(value), what="jobs.json")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], "must be an object"),
        ("text", "must be an object"),
        (None, "must be an object"),
        ({}, "'id' is missing"),
        ({"text": ""}, "'id' is missing"),
        ({"id": "a"}, "'text' is missing"),
        ({"id": 1, "text": ""}, "'id' must be a string, not a number"),
        ({"id": None, "text": ""}, "'id' must be a string, not null"),
        ({"id": "a", "text": None}, "'text' must be a string, not null"),
        ({"id": "a", "text": True}, "'text' must be a string, not a boolean"),
        ({"id": "a", "text": ["x"]}, "'text' must be a string, not an array"),
        ({"id": "a", "text": {}}, "'text' must be a string, not an object"),
        ({"id": "a", "text": 1.5}, "'text' must be a string, not a number"),
        ({"id": "a", "text": "", "queue": "mail"}, "'queue' is unknown"),
        ({"id": "a", "text": "", "Id": "a"}, "'Id' is unknown"),
        ({"id": "a\n", "text": ""}, "must match"),
        ({"id": "a", "text": "\ud800"}, "lone surrogate"),
    ],
)
def test_a_record_has_exactly_id_and_text_both_strings(record: object, reason: str) -> None:
    good = {"id": "good", "text": ""}
    with pytest.raises(InvalidInput, match=f"^jobs.json: record 2.*{reason}"):
        rules.parse_request(document([good, record, good]), what="jobs.json")
    if isinstance(record, dict):
        with pytest.raises(InvalidInput, match=reason):
            rules.parse_record(record)


def test_a_surrogate_pair_in_a_document_is_one_character() -> None:
    data = b'[{"id": "a", "text": "\\ud83d\\ude41"}]'
    assert rules.parse_request(data, what="jobs.json") == [Input("a", "\U0001f641")]


def test_a_document_that_is_too_long_in_a_record_says_which_limit() -> None:
    with pytest.raises(LimitExceeded, match=r"record 1 \(id 'a'\): text has 1,000,001"):
        rules.parse_request(document([{"id": "a", "text": "x" * 1_000_001}]), what="jobs.json")


def test_a_document_is_read_strictly() -> None:
    with pytest.raises(InvalidInput, match="stands twice"):
        rules.parse_request(b'[{"id": "a", "id": "b", "text": ""}]', what="jobs.json")
