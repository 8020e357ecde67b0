"""The fixture ``effect_case``; pytest finds it by the entry point, so everything else is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .case import EffectCase


@pytest.fixture
def effect_case(tmp_path: Path) -> Callable[..., EffectCase]:
    """Makes an ``EffectCase``, with ledgers in a folder of the test: ``effect_case("name", observed=…).check()``."""
    from .case import EffectCase

    def make(effect: str, **options: Any) -> EffectCase:
        folder = tmp_path / "crash-kit"
        folder.mkdir(exist_ok=True)
        return EffectCase(effect, folder, **options)

    return make
