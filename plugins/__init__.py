"""The only door for authors of plugins: everything that one may import, and all that is promised to stay.

An effect, in full::

    from fencepost.plugins import EffectInfo, hookimpl

    @hookimpl
    def effect_info():
        return EffectInfo(name="shout", summary="Says the text in capitals.")

    @hookimpl
    def effect_outcome(text):
        return {"shouted": text.upper()}

Every hook is described in ``hookspecs.py``, from which docs/reference/hooks.md is generated.
"""

from __future__ import annotations

from typing import Final

from pluggy import HookimplMarker

from ..core.errors import (
    Hold,
    InvalidInput,
    LeaseLost,
    PluginError,
    Reject,
    Retry,
)
from ..core.model.effect import (
    Applied,
    Delivery,
    EffectInfo,
    EffectRequest,
    NotApplied,
    Reconciled,
    Setting,
    Unknown,
)
from ..core.model.inputs import NewJob
from ..core.model.job import Job
from ..core.model.receipts import Receipt

API_VERSION: Final = 1
"""Grows when a hook changes so that an older plugin could break; a plugin may say which versions it knows
with ``FENCEPOST_API = (oldest, newest)``."""

hookimpl: Final = HookimplMarker("fencepost")
"""Marks a function as the implementation of the hook of its name."""

__all__ = [
    "API_VERSION",
    "Applied",
    "Delivery",
    "EffectInfo",
    "EffectRequest",
    "Hold",
    "InvalidInput",
    "Job",
    "LeaseLost",
    "NewJob",
    "NotApplied",
    "PluginError",
    "Receipt",
    "Reconciled",
    "Reject",
    "Retry",
    "Setting",
    "Unknown",
    "hookimpl",
]
