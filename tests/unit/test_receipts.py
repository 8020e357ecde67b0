"""Contract §3, §5, §8: what a receipt holds, when two are the same, and what an outcome may be."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.core import (
    InvalidInput,
    LimitExceeded,
    Receipt,
    ReceiptConflict,
)
from fencepost.core.model.documents import JSON, compact
from fencepost.core.model.receipts import (
    MAX_OUTCOME_BYTES,
    check_outcome,
    conflict,
    own_outcome,
)
from hypothesis import given
from hypothesis import strategies as st

DIGEST = "0" * 64
COUNTED = Receipt("a", DIGEST, {"bytes": 17, "words": 3})
SENT = Receipt("a", DIGEST, {"to": "é", "n": [1, {"k": None}]}, "send", "1.2")

DIFFERENT: dict[str, Receipt] = {
    "id": SENT._replace(id="b"),
    "input_sha256": SENT._replace(input_sha256="1" * 64),
    "effect": SENT._replace(effect="print"),
    "effect_version": SENT._replace(effect_version="1.3"),
    "no version": SENT._replace(effect_version=None),
    "a value": SENT._replace(outcome={"to": "e", "n": [1, {"k": None}]}),
    "a type": SENT._replace(outcome={"to": "é", "n": [1.0, {"k": None}]}),
    "a boolean": SENT._replace(outcome={"to": "é", "n": [True, {"k": None}]}),
    "a key less": SENT._replace(outcome={"to": "é"}),
    "a key more": SENT._replace(outcome={"to": "é", "n": [1, {"k": None}], "x": None}),
}


# -- the document ---------------------------------------------------------------------------------------------


def test_a_receipt_of_the_default_effect_does_not_name_it() -> None:
    assert list(COUNTED.document().items()) == [
        ("id", "a"),
        ("input_sha256", DIGEST),
        ("bytes", 17),
        ("words", 3),
    ]


def test_a_receipt_of_another_effect_names_it_and_its_version() -> None:
    assert SENT.document() == {
        "id": "a",
        "input_sha256": DIGEST,
        "effect": "send",
        "effect_version": "1.2",
        "to": "é",
        "n": [1, {"k": None}],
    }


def test_a_version_that_is_not_known_is_not_named() -> None:
    document = SENT._replace(effect_version=None).document()
    assert "effect_version" not in document
    assert document["effect"] == "send"


@pytest.mark.parametrize(
    "receipt", [COUNTED, SENT, SENT._replace(effect_version=None), Receipt("a", DIGEST, {})]
)
def test_a_receipt_is_read_from_its_document(receipt: Receipt) -> None:
    assert Receipt.from_document(receipt.document()) == receipt


def test_reading_leaves_the_document_as_it_was() -> None:
    document = SENT.document()
    Receipt.from_document(document)
    assert document == SENT.document()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "object"),
        (None, "object"),
        ("receipt", "object"),
        ({"input_sha256": DIGEST}, "id"),
        ({"id": "A", "input_sha256": DIGEST}, "id"),
        ({"id": 1, "input_sha256": DIGEST}, "id"),
        ({"id": "a"}, "input_sha256"),
        ({"id": "a", "input_sha256": None}, "input_sha256"),
        ({"id": "a", "input_sha256": 5}, "input_sha256"),
        ({"id": "a", "input_sha256": DIGEST, "effect": "Send"}, "effect"),
        ({"id": "a", "input_sha256": DIGEST, "effect": None}, "effect"),
        ({"id": "a", "input_sha256": DIGEST, "effect": "send", "effect_version": 1}, "effect_version"),
    ],
)
def test_a_document_that_is_no_receipt_is_refused(document: object, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Receipt.from_document(document)


# -- the same -------------------------------------------------------------------------------------------------


def test_the_order_of_keys_does_not_matter() -> None:
    other = SENT._replace(outcome={"n": [1, {"k": None}], "to": "é"})
    assert SENT.same_as(other)
    assert other.same_as(SENT)


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
def test_receipts_that_differ_in_any_part_are_not_the_same(other: Receipt) -> None:
    assert not SENT.same_as(other)
    assert not other.same_as(SENT)


@pytest.mark.parametrize("part", ["input_sha256", "effect", "effect_version"])
def test_a_conflict_says_which_part_differs_and_how(part: str) -> None:
    error = conflict(SENT, DIFFERENT[part])
    assert isinstance(error, ReceiptConflict)
    assert f"receipt of 'a': the stored {part} is" in str(error)
    assert str(getattr(SENT, part)) in str(error)
    assert str(getattr(DIFFERENT[part], part)) in str(error)


def test_a_conflict_of_outcomes_shows_both() -> None:
    message = str(conflict(COUNTED._replace(outcome={"n": 1}), COUNTED._replace(outcome={"n": 1.0})))
    assert 'the stored outcome is {"n":1}' in message
    assert 'expected was {"n":1.0}' in message


def test_a_conflict_of_large_outcomes_is_one_short_line() -> None:
    message = str(conflict(COUNTED._replace(outcome={"x": "\n" * 60_000}), COUNTED))
    assert len(message) < 600
    assert "\n" not in message


# -- outcomes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [
        {},
        {"bytes": 1, "words": 2},
        {"ID": 1, "Effect": 2, "nested": {"id": 1, "effect": "x"}},
        {"x": [None, True, 1, 1.5, "é\0", [], {}]},
        {"": "an empty key"},
    ],
)
def test_an_outcome_is_a_json_object(outcome: dict[str, Any]) -> None:
    assert check_outcome(outcome) is outcome


@pytest.mark.parametrize("value", [None, [], "text", 1, True, [("a", 1)]])
def test_anything_else_is_no_outcome(value: Any) -> None:
    with pytest.raises(InvalidInput, match="JSON object"):
        check_outcome(value)


@pytest.mark.parametrize("key", ["id", "input_sha256", "effect", "effect_version"])
def test_an_outcome_uses_no_reserved_key(key: str) -> None:
    with pytest.raises(InvalidInput, match=f"may not use the key '{key}'"):
        check_outcome({"x": 1, key: None})


@pytest.mark.parametrize(
    "outcome",
    [
        {1: "x"},
        {None: "x"},
        {True: "x"},
        {"x": {1: 2}},
        {"x": [{"y": {None: 2}}]},
        {"x": {1: 1, "1": 2}},
        {"x": ({2: 1},)},
    ],
)
def test_the_keys_of_an_outcome_are_strings_at_every_depth(outcome: dict[Any, Any]) -> None:
    """Python's encoder writes other keys as strings: the stored receipt would differ from the expected one."""
    with pytest.raises(InvalidInput, match="which is no string"):
        check_outcome(outcome)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1, 2}, b"bytes", object(), "\ud800", nested(100_000), 10**5_000],
    ids=["nan", "inf", "set", "bytes", "object", "lone surrogate", "too deep", "too many digits"],
)
def test_an_outcome_holds_nothing_but_json(value: Any) -> None:
    with pytest.raises(InvalidInput, match="is not JSON"):
        check_outcome({"x": value})


def test_an_outcome_that_holds_itself_is_refused() -> None:
    outcome: dict[str, Any] = {}
    outcome["x"] = outcome
    with pytest.raises(InvalidInput, match="is not JSON"):
        check_outcome(outcome)


def sized(size: int, character: str = "x") -> dict[str, Any]:
    width = len(character.encode())
    filler = size - len('{"x":""}')
    return {"x": character * (filler // width) + "y" * (filler % width)}


@pytest.mark.parametrize("character", ["x", "é", "𝔘"])
def test_an_outcome_has_up_to_64_kib(character: str) -> None:
    outcome = sized(65_536, character)
    assert len(compact(outcome).encode()) == 65_536
    assert check_outcome(outcome) is outcome


@pytest.mark.parametrize("character", ["x", "é", "𝔘"])
def test_an_outcome_of_one_byte_more_is_refused(character: str) -> None:
    with pytest.raises(LimitExceeded, match=r"65,537 bytes, at most 65,536"):
        check_outcome(sized(65_537, character))


PLAIN = st.dictionaries(
    st.text('ab\x00\x7f"é', max_size=3) | st.sampled_from(["id", "k" * 128, "k" * 129]),
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats()
    | st.text("a\x00\ud800é")
    | st.just("v" * 129),
    max_size=3,
)


@given(PLAIN)
def test_what_needs_no_encoding_to_be_judged_is_judged_as_if_it_had_been_encoded(
    outcome: dict[str, object],
) -> None:
    verdicts = []
    # A list is never judged by its looks.
    for tried in (outcome, outcome | {"list": []}):
        try:
            check_outcome(tried)
        except InvalidInput as error:
            verdicts.append(str(error))
        else:
            verdicts.append("fits")
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize("character", ["a", "\x01", "\\"])
def test_the_most_that_is_judged_by_its_looks_fits(character: str) -> None:
    outcome: dict[str, JSON] = {chr(65 + n) + character * 127: character * 128 for n in range(32)}
    assert check_outcome(outcome) is outcome
    assert len(compact(outcome)) <= MAX_OUTCOME_BYTES


def test_a_number_of_five_thousand_digits_is_refused_as_ever() -> None:
    with pytest.raises(InvalidInput, match="not JSON"):
        check_outcome({"n": 10**5_000})


def test_an_outcome_is_nested_a_hundred_deep_at_most() -> None:
    assert check_outcome({"x": nested(98)})
    with pytest.raises(InvalidInput, match="more than 100 deep"):
        check_outcome({"x": nested(99)})


@pytest.mark.parametrize("leaf", ["text", 1, 2**60, True, None, 1.5, {}, []], ids=repr)
@pytest.mark.parametrize("wrap", [lambda inner: {"k": inner}, lambda inner: [inner]], ids=["object", "array"])
def test_the_depth_of_an_outcome_counts_alike_for_every_leaf(leaf: Any, wrap: Any) -> None:
    containers = 98 if isinstance(leaf, (dict, list)) else 99
    for _ in range(containers):
        leaf = wrap(leaf)
    assert own_outcome({"x": leaf}) == {"x": leaf}
    with pytest.raises(InvalidInput, match="more than 100 deep"):
        check_outcome({"x": wrap(leaf)})


@pytest.mark.parametrize("outcome", [{"a": 1}, {"a": [{"b": 1}], "c": 1.5, "d": "é" * 200}])
def test_a_receipt_s_outcome_is_its_own(outcome: dict[str, Any]) -> None:
    own = own_outcome(outcome)
    assert own == outcome
    assert own is not outcome
    assert "a" in own
    if isinstance(outcome["a"], list):
        outcome["a"][0]["b"] = 2
        assert own["a"] == [{"b": 1}]
