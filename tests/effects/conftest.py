"""What the tests of remote effects share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fencepost.core.model.effect import Effect
from fencepost.plugins.manager import Plugins

from tests.effects.scripted import Scripted, scripted
from tests.effects.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A ledger with one job, and whatever is started for it ended afterwards."""
    with closing(World(tmp_path)) as world:
        yield world


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever proxies and tokens this machine is set up with."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("FENCEPOST_REMOTE_TOKEN", raising=False)


@pytest.fixture
def receiver() -> Iterator[Scripted]:
    """A receiver that says what it is told to say."""
    with scripted() as receiver:
        yield receiver


@pytest.fixture
def choose(receiver: Scripted) -> Iterator[Callable[..., Effect]]:
    """Chooses the effect ``remote`` with these settings besides those it needs."""
    chosen: list[Plugins] = []

    def choose(**settings: Any) -> Effect:
        plugins = Plugins.load(entry_points=False)
        chosen.append(plugins)
        return plugins.choose("remote", {"url": receiver.url, "namespace": "test", **settings})

    yield choose
    for plugins in chosen:
        plugins.close()
