"""The effect under test: how its author describes it, and how a process that was given the description loads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.model.effect import Effect
from ..manager import Plugins
from ..settings import Given, Settings


@dataclass(frozen=True, slots=True)
class Subject:
    """The effect under test, and how to run it."""

    effect: str
    plugins: Sequence[str]
    settings: Settings
    text: str
    other_text: str
    observed: Callable[[], int] | None
    middleware: Mapping[str, Settings] = field(default_factory=dict)

    def orders(self) -> dict[str, Any]:
        """What a process needs to know of it, as JSON; ``load_subject`` reads it."""
        return {
            "plugins": list(self.plugins),
            "effect": self.effect,
            "settings": _packed(self.settings),
            "middleware": {name: _packed(settings) for name, settings in self.middleware.items()},
            "text": self.text,
            "other_text": self.other_text,
            "path": sys.path,
            "environment": dict(os.environ),
            "folder": os.getcwd(),
        }


class Loaded(NamedTuple):
    """The effect under test, configured, and its author's module or object."""

    effect: Effect
    plugin: object


def load_subject(orders: Mapping[str, Any], *, around: Sequence[object] = ()) -> Loaded:
    """Load the effect under test in the process that was given the orders; its texts are valid."""
    sys.path[:] = orders["path"]  # pytest has put the folders of its tests there, where the effect may lie
    middleware = {name: _unpacked(settings) for name, settings in orders["middleware"].items()}
    plugins = Plugins.load(modules=orders["plugins"], settings=middleware, around=around)
    effect = plugins.choose(orders["effect"], _unpacked(orders["settings"]))
    effect.validate(orders["text"])
    effect.validate(orders["other_text"])
    return Loaded(effect, plugins.find(orders["effect"]).plugin)


def _packed(settings: Settings) -> dict[str, list[Any]]:
    given = (
        (key, value if isinstance(value, Given) else Given(value, "the settings"))
        for key, value in settings.items()
    )
    return {key: [one.value, one.origin, one.is_text] for key, one in given}


def _unpacked(settings: Mapping[str, Sequence[Any]]) -> Settings:
    return {key: Given(*parts) for key, parts in settings.items()}
