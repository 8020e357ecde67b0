"""Array literals and binary arrays: what goes in comes out, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from fencepost.core.ledgers.postgres.arrays import (
    adapt,
    askable,
    bytea_array,
    int_array,
    text_array,
)

AWKWARD = ["", "null", "NULL", "a", '"', "\\", '\\"', "{}", "a,b", " a ", "'", "%s", "é", "a\nb", '","']


@pytest.fixture
def cursor(postgres_url: str) -> Iterator[psycopg.Cursor[Any]]:
    with psycopg.connect(postgres_url) as connection:
        cursor = connection.cursor(binary=True)
        adapt(cursor.adapters)
        yield cursor


@pytest.mark.parametrize(
    "values", [[], ["a"], ["null"], AWKWARD, [*AWKWARD, None], [None], ["a", None, "b"]], ids=repr
)
def test_texts(cursor: psycopg.Cursor[Any], values: list[str | None]) -> None:
    assert cursor.execute("SELECT %s::text[]", (text_array(values),)).fetchone() == (values,)


@pytest.mark.parametrize("values", [[], [0], [1, None, -1], [2**63 - 1, -(2**63)]], ids=repr)
def test_numbers(cursor: psycopg.Cursor[Any], values: list[int | None]) -> None:
    assert cursor.execute("SELECT %s::bigint[]", (int_array(values),)).fetchone() == (values,)


@pytest.mark.parametrize("values", [[], [b""], [b"\0", b"a\0b", bytes(range(256))], [b"x" * 100_000] * 3])
def test_bytes(cursor: psycopg.Cursor[Any], values: list[bytes]) -> None:
    cursor.execute(
        "SELECT value FROM unnest(%b) WITH ORDINALITY AS t (value, n) ORDER BY n", (bytea_array(values),)
    )
    assert cursor.fetchall() == [(value,) for value in values]


def test_what_cannot_be_an_id_is_not_asked_for() -> None:
    assert askable(["a", "b"]) == ["a", "b"]
    assert askable(["a", "b\0", "é", "\ud800", "c"]) == ["a", "c"]
