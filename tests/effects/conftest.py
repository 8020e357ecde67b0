"""What the tests of remote effects share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.effects.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A ledger with one job, and whatever is started for it ended afterwards."""
    with closing(World(tmp_path)) as world:
        yield world
