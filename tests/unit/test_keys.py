"""Contract §8, the idempotency key: one for every attempt of a job, another for any other input."""

from __future__ import annotations

import hashlib
import re

import pytest
from fencepost.core.model.inputs import text_sha256
from fencepost.core.model.keys import idempotency_key

DIGEST = text_sha256("text")
KEY = idempotency_key("shop", "send", "order-7", DIGEST)


def test_a_key_is_made_as_the_contract_says() -> None:
    parts = f"shop\0send\0order-7\0{DIGEST}\0".encode()
    assert hashlib.sha256(parts).hexdigest()[:40] == KEY.removeprefix("fp1-")
    assert re.fullmatch(r"fp1-[0-9a-f]{40}", KEY)


def test_a_key_never_changes() -> None:
    """Receivers keep keys for long: a release that makes others sends everything twice."""
    assert KEY == "fp1-fceb41f12d39da8bebad945c031a96fad039600f"


@pytest.mark.parametrize(
    "other",
    [
        ("shop-2", "send", "order-7", DIGEST),
        ("", "send", "order-7", DIGEST),
        ("shop", "print", "order-7", DIGEST),
        ("shop", "send", "order-8", DIGEST),
        ("shop", "send", "order-7", text_sha256("another text")),
        ("shopsend", "", "order-7", DIGEST),
        ("", "shopsend", "order-7", DIGEST),
        ("shop", "sendorder-7", "", DIGEST),
    ],
)
def test_another_input_has_another_key(other: tuple[str, str, str, str]) -> None:
    assert idempotency_key(*other) != KEY


def test_a_namespace_may_be_any_text() -> None:
    parts = f"größe 山\0send\0order-7\0{DIGEST}\0".encode()
    key = idempotency_key("größe 山", "send", "order-7", DIGEST)
    assert key == f"fp1-{hashlib.sha256(parts).hexdigest()[:40]}"
