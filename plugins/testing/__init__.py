"""The crash kit: proves that an effect keeps its promise, by killing real workers at the worst moments.

With pytest there is nothing to import: the fixture ``effect_case`` is there wherever fencepost is installed. From the
command line it is ``fencepost plugins check NAME``. docs/how-to/test-effects.md shows both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .case import CrashKitError, EffectCase
    from .points import POINTS
    from .requests import make_request
    from .results import Result

__all__ = ["POINTS", "CrashKitError", "EffectCase", "Result", "make_request"]


def __getattr__(name: str) -> object:
    # Pytest imports this package at every start, for the fixture beside it; nobody is to wait for the rest.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import case, points, requests, results

    return next(
        getattr(module, name) for module in (case, points, requests, results) if hasattr(module, name)
    )
