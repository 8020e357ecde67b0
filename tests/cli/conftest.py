"""Every kind of ledger that other processes can open, under the names that ``--store`` takes."""

from __future__ import annotations

import pytest
from fencepost.core.testing import NewStore

from tests.cli.inprocess import Program


@pytest.fixture
def store_name(new_store: NewStore) -> str:
    """The name of a store that does not exist yet; a test that asks for it runs over every kind."""
    name = new_store().name
    assert name is not None
    return name


@pytest.fixture
def program(store_name: str) -> Program:
    """``fencepost`` on that store."""
    return Program(store_name)


@pytest.fixture
def scheduling() -> None:
    """Asked for by tests of schedules and pauses, which some kinds of ledgers do not have."""
