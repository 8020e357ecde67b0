"""A store in PostgreSQL, and what tests do behind its back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fencepost.core import Ledger
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.testing import Store


@pytest.fixture
def store(postgres_stores: Callable[[Path], Store]) -> Store:
    return postgres_stores(Path())


@pytest.fixture
def url(store: Store) -> str:
    """The name of the store."""
    assert store.name is not None
    return store.name


@pytest.fixture
def ledger(store: Store) -> Iterator[Ledger]:
    with store.open() as ledger:
        ledger.counts()
        yield ledger


@pytest.fixture
def sql(url: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Runs SQL in the store's schema, over a connection that commits each statement."""
    address = parse_address(url)
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path = {address.schema}".encode())

        def run(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

        yield run
