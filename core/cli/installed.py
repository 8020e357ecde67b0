"""What is installed where a command runs, for commands that only look at a ledger."""

from __future__ import annotations

from ..config import load
from ..model.job import DEFAULT_EFFECT
from .ui.output import documents_only


def effect_here(name: str, config: str | None) -> tuple[bool, str | None]:
    """Return whether a plugin here has the effect, and which settings it lacks, in words."""
    if name == DEFAULT_EFFECT:
        return True, None  # it ships with the program, and has no settings
    from .composition import Effects  # pluggy is slow to load, and most jobs do not get here

    with documents_only():
        effects = Effects(load(config), settings=None, modules=None, blocked=None, tolerant=True)
        return name in effects.plugins.effect_names(), effects.lacks_settings(name)
