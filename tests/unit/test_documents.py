"""Contract §3, one JSON document: strict, and refused in one clear line whatever its bytes are."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from fencepost.core import InvalidInput, LimitExceeded
from fencepost.core.model.documents import (
    canonical,
    compact,
    parse,
    readable,
)
from hypothesis import given
from hypothesis import strategies as st

FOUR_MIB = 4 * 1024 * 1024

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

REFUSED: dict[str, tuple[bytes, str]] = {
    "an empty file": (b"", "not one JSON document: it is empty"),
    "only blanks": (b" \n\t\n", "not one JSON document: it holds only blanks"),
    "a byte order mark": (b"\xef\xbb\xbf[]", "byte order mark"),
    "only a byte order mark": (b"\xef\xbb\xbf", "byte order mark"),
    "utf-16": ("[]".encode("utf-16"), "not UTF-8 at byte 0"),
    "invalid utf-8": (b'["\xff"]', "not UTF-8 at byte 2"),
    "an overlong form": (b'["\xc0\xaf"]', "not UTF-8 at byte 2"),
    "an encoded surrogate": (b'["\xed\xa0\x80"]', "not UTF-8 at byte 2"),
    "a cut character": (b'["\xc3', "not UTF-8 at byte 2"),
    "a cut document": (b'[{"id": "a"', "not one JSON document"),
    "a second document": (b"[] []", "a second document"),
    "a second document after a newline": (b"[]\n{}\n", "a second document"),
    "stray text": (b"[]x", "stray text"),
    "a nul after it": (b"[]\0", "stray text"),
    "a byte order mark after it": (b"[]\xef\xbb\xbf", "stray text"),
    "a no-break space": ("\u00a0[]".encode(), "not one JSON document"),
    "a trailing comma": (b"[1,]", "not one JSON document"),
    "single quotes": (b"['a']", "not one JSON document"),
    "a comment": (b"[] // none", "stray text"),
    "a bare word": (b"[nil]", "not one JSON document"),
    "a leading zero": (b"[01]", "not one JSON document"),
    "a plus sign": (b"[+1]", "not one JSON document"),
    "a bare fraction": (b"[.5]", "not one JSON document"),
    "a raw control character": (b'["\n"]', "not one JSON document"),
    "an unknown escape": (b'["\\x41"]', "not one JSON document"),
    "NaN": (b"[NaN]", "NaN is not JSON"),
    "Infinity": (b"[Infinity]", "Infinity is not JSON"),
    "-Infinity": (b"[-Infinity]", "-Infinity is not JSON"),
    "1e999": (b"[1e999]", "1e999 is too large"),
    "-1e999": (b"[-1e999]", "-1e999 is too large"),
    "a whole number of 5,000 digits": (b"[" + b"9" * 5_000 + b"]", "too long; at most 4,300 digits"),
    "a key twice": (b'{"a": 1, "b": 2, "a": 1}', "'a' stands twice"),
    "a key twice, one escaped": (b'{"a": 1, "\\u0061": 2}', "'a' stands twice"),
    "a key twice, further in": (b'[{"x": [{"k": 1, "k": 1}]}]', "'k' stands twice"),
    "an empty key twice": (b'{"": 1, "": 2}', "'' stands twice"),
    "100,000 nested arrays": (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "100,000 arrays left open": (b"[" * 100_000, "nested too deeply"),
    "100,000 nested objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_anything_but_one_strict_document_is_refused_in_one_line(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match=r"^in.json: ") as raised:
        parse(data, what="in.json")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_an_error_names_the_line() -> None:
    with pytest.raises(InvalidInput, match="line 3"):
        parse(b"[\n  1,\n  oops\n]", what="in.json")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[]", []),
        (b" \r\n\t[] \n", []),
        (b"null", None),
        (b'"text"', "text"),
        (b"1", 1),
        (b"1.0", 1.0),
        (b"-0.0", -0.0),
        (b"1e2", 100.0),
        (b"1e-999", 0.0),
        (b"true", True),
        (b'{"a": {"a": {"a": 1}}}', {"a": {"a": {"a": 1}}}),
        (b'["\\u0000", "\\ud83d\\ude41", "\\ud800"]', ["\0", "\U0001f641", "\ud800"]),
        ('["é𝔘\ufeff"]'.encode(), ["é𝔘\ufeff"]),
        (b"[" + b"9" * 4_000 + b"]", [int("9" * 4_000)]),
        (b"[" * 200 + b"]" * 200, None),
    ],
)
def test_a_strict_document_is_read(data: bytes, value: object) -> None:
    found = parse(data, what="in.json")
    if value is not None or data == b"null":
        assert found == value
        assert type(found) is type(value)


def test_a_document_has_up_to_4_mib() -> None:
    text = "x" * (FOUR_MIB - 2)
    assert parse(f'"{text}"'.encode(), what="in.json") == text


def test_one_byte_more_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="more than 4,194,304 bytes"):
        parse(b'"' + b"x" * (FOUR_MIB - 1) + b'"', what="in.json")


def test_the_size_counts_bytes_and_blanks() -> None:
    parse(b"[]" + b" " * (FOUR_MIB - 2), what="in.json")
    with pytest.raises(LimitExceeded):
        parse(b"[]" + b" " * (FOUR_MIB - 1), what="in.json")
    with pytest.raises(LimitExceeded):
        parse(('"' + "é" * (FOUR_MIB // 2) + '"').encode(), what="in.json")


@pytest.mark.parametrize(("size", "fits"), [(9, True), (10, True), (11, False)])
def test_another_limit_can_be_given(size: int, fits: bool) -> None:
    data = b'"' + b"x" * (size - 2) + b'"'
    if fits:
        parse(data, what="in.json", max_bytes=10)
    else:
        with pytest.raises(LimitExceeded, match="more than 10 bytes"):
            parse(data, what="in.json", max_bytes=10)


@given(json_values)
def test_what_is_written_is_read_again(value: Any) -> None:
    for written in (compact(value).encode("utf-8"), readable(value)):
        again = parse(written, what="in.json")
        assert canonical(again) == canonical(value)


@given(st.binary(max_size=64))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(InvalidInput):
        parse(data, what="in.json")


def test_compact_is_one_line_with_characters_as_they_are() -> None:
    assert compact({"b": [1, 2.5, None, True], "a": "é\n"}) == '{"b":[1,2.5,null,true],"a":"é\\n"}'


def test_readable_is_indented_by_two_with_a_newline_at_the_end() -> None:
    assert readable([{"a": "é"}]) == '[\n  {\n    "a": "é"\n  }\n]\n'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_is_not_json_is_never_written(value: Any) -> None:
    for write in (compact, canonical, readable):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ((1, 2), [1, 2]),
        ({"é": "é"}, json.loads('{"\\u00e9": "\\u00e9"}')),
    ],
)
def test_equal_values_have_one_canonical_text(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0, None),
        (1, "1"),
        (0.0, -0.0),
        ("", None),
        ([], {}),
        ([1, 2], [2, 1]),
        ({"a": None}, {}),
        ("é", "e\u0301"),
        (2**53, 2**53 + 1),
    ],
)
def test_values_that_differ_in_value_or_type_have_different_texts(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)
