"""What a receiver decides and what it reads from the wire: contract §9, row by row, without a database."""

import hashlib
from base64 import b64encode

import pytest
from fencepost.effects.receiver import (
    Decision,
    Known,
    Malformed,
    Refused,
    decide,
    read_delivery,
)

BODY = b"hello"


def digest(body=BODY):
    return f"sha-256=:{b64encode(hashlib.sha256(body).digest()).decode()}:"


def headers(**changes):
    given = {
        "Idempotency-Key": '"fp1-abc"',
        "Fencepost-Job": "job-1",
        "Fencepost-Fence": "3",
        "Content-Digest": digest(),
    }
    given |= {name.replace("_", "-"): value for name, value in changes.items()}
    return [(name, value) for name, value in given.items() if value is not None]


@pytest.mark.parametrize(
    ("known", "decision"),
    [
        (None, Decision.DO),
        (Known(fence=4), Decision.STALE_FENCE),
        (Known(fence=4, digest="mine", in_progress=True), Decision.STALE_FENCE),
        (Known(fence=4, digest="mine", answer="{}"), Decision.STALE_FENCE),
        (Known(fence=4, digest="other", answer="{}"), Decision.STALE_FENCE),
        (Known(fence=3, digest="other", in_progress=True), Decision.OTHER_DIGEST),
        (Known(fence=3, digest="other", answer="{}"), Decision.OTHER_DIGEST),
        (Known(fence=3, digest="mine", in_progress=True), Decision.IN_PROGRESS),
        (Known(fence=3, digest="mine", answer="{}"), Decision.REPLAY),
        (Known(fence=2, digest="mine", answer="{}"), Decision.REPLAY),
        (Known(fence=3), Decision.DO),
        (Known(fence=2), Decision.DO),
    ],
)
def test_the_checks_are_made_in_the_order_of_the_contract(known, decision):
    assert decide(known, fence=3, digest="mine") is decision


def test_a_delivery_is_read_from_its_headers_and_body():
    delivery = read_delivery(headers(Content_Type="text/plain"), BODY)
    assert (delivery.key, delivery.fence, delivery.body) == ("fp1-abc", 3, BODY)
    assert (delivery.job, delivery.content_type) == ("job-1", "text/plain")
    assert delivery.digest == hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize(
    ("value", "key"),
    [('"a b"', "a b"), (r'"a\"b\\c"', r'a"b\c'), ('"' + "k" * 255 + '"', "k" * 255), ("  \"k\"  ", "k")],
)  # fmt: skip
def test_a_key_is_a_string_as_structured_fields_have_it(value, key):
    assert read_delivery(headers(Idempotency_Key=value), BODY).key == key


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"Idempotency_Key": None}, "Idempotency-Key is missing"),
        ({"Idempotency_Key": "bare"}, "in quotes"),
        ({"Idempotency_Key": '"open'}, "in quotes"),
        ({"Idempotency_Key": '"a", "b"'}, "in quotes"),
        ({"Idempotency_Key": '"é"'}, "in quotes"),
        ({"Idempotency_Key": '"a\\b"'}, "in quotes"),
        ({"Idempotency_Key": '""'}, "0 characters"),
        ({"Idempotency_Key": '"' + "k" * 256 + '"'}, "256 characters"),
        ({"Content_Digest": None}, "Content-Digest is missing"),
        ({"Content_Digest": "sha-256=nonsense"}, "sha-256=:BASE64:"),
        ({"Content_Digest": f"md5=:{b64encode(b'x' * 16).decode()}:"}, "sha-256=:BASE64:"),
        ({"Content_Digest": digest(b"other")}, "not the digest of the body"),
        ({"Fencepost_Fence": None}, "Fencepost-Fence is missing"),
        ({"Fencepost_Fence": "-1"}, "whole number"),
        ({"Fencepost_Fence": "1.0"}, "whole number"),
        ({"Fencepost_Fence": "٣"}, "whole number"),
        ({"Fencepost_Fence": "9" * 19}, "whole number"),
    ],
)
def test_what_is_missing_or_malformed_is_refused_by_name(changes, says):
    with pytest.raises(Malformed, match=says):
        read_delivery(headers(**changes), BODY)


def test_a_header_that_stands_twice_is_not_read_as_either_of_them():
    with pytest.raises(Malformed, match="one string in quotes"):
        read_delivery([*headers(), ("idempotency-key", '"another"')], BODY)


def test_other_digests_may_stand_beside_the_one_that_is_understood():
    several = f"sha-512=:{b64encode(b'x' * 64).decode()}:, {digest()}"
    assert read_delivery(headers(Content_Digest=several), BODY).key == "fp1-abc"


@pytest.mark.parametrize("status", [200, 302, 401, 408, 409, 412, 422, 425, 429, 500])
def test_work_cannot_refuse_with_a_status_that_means_something_else(status):
    with pytest.raises(ValueError, match="a refusal is a 4xx"):
        Refused("no", status=status)
