"""The ledgers that every test of ledgers runs over, and how hard hypothesis searches."""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fencepost.core import Capabilities, Ledger, open_ledger
from fencepost.core.testing import (
    KEEPS_ALL,
    KEEPS_LITTLE,
    ModelLedger,
    ModelStore,
    NewStore,
    Store,
)
from hypothesis import HealthCheck, settings

from tests.postgres_schemas import Schemas
from tests.postgres_server import server_url

_SUITE = settings(
    max_examples=220, stateful_step_count=51, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("suite", _SUITE)
settings.register_profile("soak", _SUITE, max_examples=4_400)
settings.load_profile("soak" if os.environ.get("FENCEPOST_SOAK") == "1" else "suite")


@dataclass(frozen=True)
class Kind:
    """A kind of ledger."""

    fresh: Callable[[Path], Store] | str
    """Makes a store at a path that is free; or the name of a fixture that does."""
    lacks: frozenset[str] = frozenset()
    """Fixtures of the suite that this kind cannot give; tests that need one are not made for it."""


def _model(capabilities: Capabilities) -> Callable[[Path], Store]:
    def fresh(_: Path) -> Store:
        store = ModelStore()
        return Store(open=lambda: ModelLedger(store, capabilities))

    return fresh


def _directory(path: Path) -> Store:
    return Store(open=lambda: open_ledger(path), name=str(path))


def _sqlite(path: Path) -> Store:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(file)

    def check() -> None:
        with contextlib.closing(connect()) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    file = path.with_suffix(".db")
    name = str(file)
    return Store(open=lambda: open_ledger(name), name=name, connect=connect, check=check)


LEDGERS = {
    "model": Kind(_model(KEEPS_ALL), frozenset({"store_name", "joining"})),
    "model that keeps little": Kind(_model(KEEPS_LITTLE), frozenset({"store_name", "joining", "scheduling"})),
    "directory": Kind(_directory, frozenset({"joining", "lined"})),
    "sqlite": Kind(_sqlite),
    "postgres": Kind("postgres_stores"),
}
"""Another kind of ledger is another line here."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that has to do with a ledger over every kind that can give what the test needs."""
    if "ledger_kind" in metafunc.fixturenames:
        kinds = [name for name, kind in LEDGERS.items() if kind.lacks.isdisjoint(metafunc.fixturenames)]
        metafunc.parametrize("ledger_kind", kinds)


@pytest.fixture
def lacks(ledger_kind: str) -> frozenset[str]:
    """What the kind is said to lack."""
    return LEDGERS[ledger_kind].lacks


@pytest.fixture
def new_store(ledger_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> NewStore:
    """Makes a fresh store of the kind each time it is called."""
    numbers, fresh = itertools.count(), LEDGERS[ledger_kind].fresh
    make = request.getfixturevalue(fresh) if isinstance(fresh, str) else fresh
    return lambda: make(tmp_path / f"store-{next(numbers)}")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real server: its own, or the one that FENCEPOST_TEST_POSTGRES_URL names."""
    with server_url() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_schemas(postgres_url: str) -> Schemas:
    """The schemas of that server that tests use one after another."""
    return Schemas(postgres_url)


@pytest.fixture
def postgres_stores(postgres_schemas: Schemas) -> Iterator[Callable[[Path], Store]]:
    """Makes stores, each in a schema of its own."""
    with postgres_schemas.lend() as fresh:
        yield lambda _: fresh()


@pytest.fixture
def make_ledger(new_store: NewStore) -> Iterator[Callable[[], Ledger]]:
    """Opens one store of the kind again and again; what was opened is closed when the test ends."""
    store, opened = new_store(), list[Ledger]()

    def make() -> Ledger:
        opened.append(store.open())
        return opened[-1]

    yield make
    for ledger in opened:
        ledger.close()
