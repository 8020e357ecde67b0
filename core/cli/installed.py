"""What is installed where a command runs, for commands that only look at a ledger."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import load
from ..model.job import DEFAULT_EFFECT
from .ui.output import documents_only, warn


@dataclass(frozen=True, slots=True)
class EffectHere:
    """What is known here of an effect: another machine may have other plugins and settings."""

    installed: bool
    lacks_settings: str | None = None
    """Which settings it requires and has not, and how to give them."""
    namespace: str | None = None
    """The namespace of its idempotency keys; None where it has no keys, or where that is not known."""


def effect_here(name: str, config: str | None) -> EffectHere:
    """Look for the effect among the plugins here, without running any of its code but its declaration."""
    if name == DEFAULT_EFFECT:
        return EffectHere(installed=True)  # it ships with the program, and has neither settings nor keys
    from ..composition import Effects  # pluggy is slow to load, and most jobs do not get here

    with documents_only():
        effects = Effects(load(config), warn=warn, tolerant=True)
        return EffectHere(
            name in effects.plugins.effect_names(), effects.lacks_settings(name), effects.namespace_of(name)
        )
