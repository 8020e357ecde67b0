"""The crash kit: proves that an effect keeps its promise, by killing real workers at the worst moments.

With pytest there is nothing to import: the fixture ``effect_case`` is there wherever fencepost is installed. From the
command line it is ``fencepost plugins check NAME``. docs/how-to/test-an-effect.md shows both.
"""

from __future__ import annotations

from .case import CrashKitError, EffectCase, Result
from .points import POINTS
from .requests import make_request

__all__ = ["POINTS", "CrashKitError", "EffectCase", "Result", "make_request"]
