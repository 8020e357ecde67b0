"""The rules that a plugin keeps when it is loaded, each with an error that says what to write instead.

Nothing is called here but ``effect_info``; what a plugin needs at run time is checked by ``settings.py`` and
``bound_effect.py``.
"""

from __future__ import annotations

import difflib
import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ..core.errors import PluginError
from ..core.model.effect import DELIVERIES, EffectInfo, Setting
from ..core.model.inputs import is_name
from . import API_VERSION, hookspecs

WRAPPABLE: Final = frozenset({"effect_validate", "effect_outcome", "effect_apply", "effect_reconcile"})
NAMESPACE: Final = "namespace"
"""The setting that keeps the idempotency keys of two ledgers apart; acting effects take it undeclared."""

_MARK: Final = "fencepost_impl"
_SPEC_MARK: Final = "fencepost_spec"

HOOKS: Final[tuple[str, ...]] = tuple(
    name for name, value in vars(hookspecs).items() if hasattr(value, _SPEC_MARK)
)
"""Every hook's name, in lifecycle order."""

OBSERVERS: Final = tuple(name for name in HOOKS if not name.startswith("effect_"))


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a plugin implements: hooks that answer, and hooks that wrap other plugins' answers."""

    implemented: tuple[str, ...]
    wrapped: tuple[str, ...]

    @property
    def of_effect(self) -> bool:
        """Whether they do the work of an effect."""
        return "effect_outcome" in self.implemented or "effect_apply" in self.implemented

    @property
    def of_middleware(self) -> bool:
        """Whether they wrap the effects of other plugins, or change their texts."""
        return not self.of_effect and bool(self.wrapped or "effect_text" in self.implemented)

    @property
    def names(self) -> list[str]:
        """All of them in lifecycle order, the wrapped ones marked."""
        return [name for name in HOOKS if name in self.implemented] + [
            f"{name} (wrapper)" for name in HOOKS if name in self.wrapped
        ]


def is_fault(error: BaseException) -> bool:
    """Whether an author's code is at fault that ended with this, and not the person who pressed Ctrl-C.

    Asked wherever such code is called and is not an attempt. Code that exits, or that raises ``CancelledError``,
    ``GeneratorExit`` or a ``KeyboardInterrupt`` of its own, must not end the program. Python raises
    ``KeyboardInterrupt`` for a person only in the main thread, and only while SIGINT has no handler of ours.
    """
    return not isinstance(error, KeyboardInterrupt) or not (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def check_api(plugin: object) -> None:
    """Refuse a plugin whose ``FENCEPOST_API = (oldest, newest)`` does not cover this program's version."""
    span = getattr(plugin, "FENCEPOST_API", None)
    if span is None:
        return
    if not (isinstance(span, tuple) and len(span) == 2 and all(type(end) is int for end in span)):
        raise PluginError(
            f"FENCEPOST_API is {span!r}; it must be two whole numbers, (oldest, newest), such as "
            f"({API_VERSION}, {API_VERSION})"
        )
    oldest, newest = span
    if oldest > API_VERSION:
        raise PluginError(
            f"it needs plugin API {oldest} or later, and this fencepost has {API_VERSION}: upgrade fencepost"
        )
    if newest < API_VERSION:
        raise PluginError(
            f"it was written for plugin API {newest} or earlier, and this fencepost has {API_VERSION}: "
            "look for a newer version of the plugin"
        )


def read_hooks(plugin: object) -> Hooks:
    """Find the plugin's hooks, and refuse those that could only be a mistake."""
    if inspect.isclass(plugin):
        raise PluginError(
            f"it is the class {plugin.__name__}; a plugin is a module or an instance: name {plugin.__name__}()"
        )
    implemented: list[str] = []
    wrapped: list[str] = []
    for attribute, function, marks in _marked(plugin):
        hook = marks.get("specname") or attribute
        _check_function(hook, attribute, function, wrapper=_wraps(marks))
        (wrapped if _wraps(marks) else implemented).append(hook)
    for hook in HOOKS:
        unmarked = getattr(plugin, hook, None)
        if hook not in implemented and hook not in wrapped and inspect.isroutine(unmarked):
            raise PluginError(f"{hook} is not marked as a hook: put @hookimpl above it")
    if not implemented and not wrapped:
        raise PluginError(
            _hooks_elsewhere(plugin)
            or "it implements no hook: put @hookimpl above the functions that are meant as hooks"
        )
    if "effect_info" not in implemented:
        orphan = next(
            (hook for hook in implemented if hook.startswith("effect_") and hook != "effect_text"), None
        )
        if orphan:
            raise PluginError(
                f"it implements {orphan} but not effect_info, which names the effect; to change what other "
                f"effects do, make it a wrapper: @hookimpl(wrapper=True)"
            )
    return Hooks(tuple(implemented), tuple(wrapped))


def check_effect(info: object, hooks: Hooks) -> EffectInfo:
    """The declaration of an effect, if it keeps the rules of contract §8."""
    if not isinstance(info, EffectInfo):
        raise PluginError(f"effect_info returned {_kind(info)}; return an EffectInfo")
    if not is_name(info.name):
        raise PluginError(
            f"the effect's name {info.name!r} must match [a-z][a-z0-9-]{{0,63}}: a lower-case letter, then "
            "a-z, 0-9 and -"
        )
    for part in ("summary", "version"):
        value = getattr(info, part)
        if not isinstance(value, str) or not value.strip():
            raise PluginError(f"the effect's {part} is {value!r}; it must be a text that is not empty")
    if hooks.of_middleware:
        _check_settings(info, pure=True)
        return info
    if info.delivery not in DELIVERIES:
        raise PluginError(
            f"the effect's delivery is {info.delivery!r}; it must be one of {', '.join(DELIVERIES)} "
            "(docs/how-to/write-effects.md helps to choose)"
        )
    pure, acting = "effect_outcome" in hooks.implemented, "effect_apply" in hooks.implemented
    if pure and acting:
        raise PluginError(
            "it implements both effect_outcome and effect_apply; keep effect_outcome if the effect only "
            "computes, effect_apply if it changes anything"
        )
    if not pure and not acting:
        raise PluginError(
            "it implements neither effect_outcome (for an effect that only computes) nor effect_apply "
            "(for one that changes something); middleware has a wrapper, or effect_text"
        )
    _check_delivery(info, hooks, pure=pure)
    _check_settings(info, pure=pure)
    return info


def _check_delivery(info: EffectInfo, hooks: Hooks, *, pure: bool) -> None:
    if pure and info.delivery != "local":
        raise PluginError(
            f"effect_outcome is for pure effects, and their delivery is 'local', not {info.delivery!r}; an "
            "effect that reaches out implements effect_apply"
        )
    if info.delivery == "keyed" and not (isinstance(info.receiver_key, str) and info.receiver_key.strip()):
        raise PluginError(
            "delivery 'keyed' needs receiver_key: say where the receiver keeps the idempotency key (a header, "
            "a column, a parameter); if it keeps none, the effect is 'probed' or 'once'"
        )
    reconciles = "effect_reconcile" in hooks.implemented
    if info.delivery == "probed" and not reconciles:
        raise PluginError(
            "delivery 'probed' needs effect_reconcile, which asks the receiver what became of a key; if it "
            "cannot be asked, the effect is 'once'"
        )
    if info.delivery in ("local", "once") and reconciles:
        raise PluginError(
            f"delivery {info.delivery!r} never asks effect_reconcile; an effect whose receiver can be asked is "
            "'probed'"
        )


def _check_settings(info: EffectInfo, *, pure: bool) -> None:
    if not hasattr(info.settings, "items"):
        raise PluginError(f"the effect's settings are {_kind(info.settings)}; they must be a dict of Setting")
    for key, setting in info.settings.items():
        if not isinstance(key, str) or not key.isidentifier():
            raise PluginError(f"the setting {key!r} must be named like a Python variable")
        if not isinstance(setting, Setting):
            raise PluginError(f"the setting {key!r} is {_kind(setting)}; it must be a Setting")
        if setting.required and setting.default is not None:
            raise PluginError(f"the setting {key!r} is required and has a default: drop one of the two")
    if NAMESPACE in info.settings and (pure or info.settings[NAMESPACE].default is not None):
        raise PluginError(
            "the setting 'namespace' keeps the idempotency keys of two ledgers apart: a pure effect has none, "
            "and it can have no default"
        )


def _hooks_elsewhere(plugin: object) -> str | None:
    """What to name instead of a module whose hooks are the methods of an object or of a class in it."""
    if not isinstance(plugin, ModuleType):
        return None
    called = Path(plugin.__file__).name if plugin.__file__ else plugin.__name__
    for name, value in list(vars(plugin).items()):
        if type(value).__module__ == plugin.__name__ and any(_marked(type(value))):
            return f"it implements no hook itself, but its object {name} does: name {called}:{name}"
    for name, value in list(vars(plugin).items()):
        if inspect.isclass(value) and value.__module__ == plugin.__name__ and any(_marked(value)):
            return (
                f"it implements no hook itself, but its class {name} does: put plugin = {name}() below the class, and "
                f"name {called}:plugin"
            )
    return None


class Wrappers:
    """The wrappers of a plugin alone, as a plugin: its other hooks are not called for the effects that it wraps."""

    def __init__(self, plugin: object) -> None:
        vars(self).update({name: function for name, function, marks in _marked(plugin) if _wraps(marks)})


def _marked(plugin: object) -> Iterator[tuple[str, Callable[..., object], dict[str, Any]]]:
    for attribute in dir(plugin):
        static = inspect.getattr_static(plugin, attribute, None)
        if isinstance(static, property):  # reading it would run the plugin's code
            continue
        function = getattr(plugin, attribute, None)
        if not inspect.isroutine(function):  # a mock or a proxy has every attribute that one asks for
            continue
        marks = getattr(function, _MARK, None)
        if isinstance(marks, dict):
            yield attribute, function, marks


def _wraps(marks: dict[str, Any]) -> bool:
    return bool(marks.get("wrapper") or marks.get("hookwrapper"))


def _check_function(hook: str, attribute: str, function: Callable[..., object], *, wrapper: bool) -> None:
    if hook not in HOOKS:
        near = difflib.get_close_matches(hook, HOOKS, n=1)
        raise PluginError(
            f"there is no hook {hook!r}"
            + (f"; {near[0]!r} is near to it" if near else "; docs/reference/hooks.md lists them")
        )
    called = hook if hook == attribute else f"{attribute} (for {hook})"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise PluginError(
            f"{called} is async; hooks are called from a thread: make it a plain function, with asyncio.run() "
            "inside where needed"
        )
    if wrapper and hook not in WRAPPABLE:
        raise PluginError(f"{hook} cannot be wrapped; these can: {', '.join(sorted(WRAPPABLE))}")
    if inspect.isgeneratorfunction(function) and not wrapper:
        raise PluginError(f"{called} is a generator; a wrapper needs the mark @hookimpl(wrapper=True)")


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
