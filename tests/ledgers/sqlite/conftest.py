"""A SQLite ledger with a clock that stands still, and a look at its file from outside."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fencepost.core.ledgers.sqlite import SqliteLedger
from fencepost.core.model.clock import logical

Look = Callable[..., list[tuple[Any, ...]]]
"""Runs SQL on a connection of its own, commits, and returns all rows."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def open_ledger(path: Path) -> Iterator[Callable[..., SqliteLedger]]:
    """Opens the ledger of this test, again and again; all are closed when it ends."""
    opened: list[SqliteLedger] = []

    def open_one(**options: Any) -> SqliteLedger:
        opened.append(SqliteLedger(path, **({"clock": logical(0)} | options)))
        return opened[-1]

    yield open_one
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(open_ledger: Callable[..., SqliteLedger]) -> SqliteLedger:
    return open_ledger()


@pytest.fixture
def look(path: Path) -> Iterator[Look]:
    connections: list[sqlite3.Connection] = []

    def run(sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        if not connections:
            # Opened when first used, so that it never makes the file.
            connections.append(sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None))
        return connections[0].execute(sql, parameters).fetchall()

    yield run
    for connection in connections:
        connection.close()


@pytest.fixture
def in_thread() -> Callable[[Callable[[], object]], object]:
    """Calls a function in a thread of its own, and gives its answer or its error."""

    def call(function: Callable[[], object]) -> object:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function).result()

    return call
