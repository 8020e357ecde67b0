"""Loading plugins, each for itself, and choosing effects from them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ..core.errors import EffectNotFound, PluginError
from ..core.model.effect import Effect, EffectInfo
from ..core.model.texts import headline
from . import discovery
from .bound_effect import BoundEffect, bind
from .discovery import Found
from .middleware import Middleware
from .observers import Observers
from .redact import Redactor
from .rules import NAMESPACE, Hooks, check_api, check_effect, is_fault, read_hooks
from .settings import NotConfigured, Settings, resolve

BLOCKED_ENV: Final = "FENCEPOST_NO_PLUGINS"
"""Names of plugins or distributions, separated by commas, that are never loaded; ``all`` for every one not shipped."""

State = Literal["loaded", "blocked", "broken"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of one plugin."""

    found: Found
    state: State
    reason: str = ""
    plugin: object = None
    hooks: Hooks | None = None
    info: EffectInfo | None = None


class Plugins:
    """The plugins of one command. Each is loaded in its own ``try``: a broken one harms nothing but its own jobs."""

    def __init__(
        self,
        loaded: Sequence[Loaded],
        builtins: Sequence[Found],
        *,
        blocked: Collection[str],
        environ: Mapping[str, str],
        settings: Mapping[str, Settings] | None = None,
        around: Sequence[object] = (),
    ) -> None:
        """Use ``Plugins.load``."""
        self._loaded = _refuse_doubles(loaded, {found.name for found in builtins})
        self._builtins = {found.name: found for found in builtins}
        self._blocked = blocked
        self._environ = environ
        self.redactor = Redactor()
        """Hides the secrets of every effect that was chosen, or was to be: for logs and tracebacks."""
        self._chosen: dict[str, tuple[Settings, BoundEffect]] = {}
        self._settings = dict(settings or {})
        self._around = list(around)
        self._middleware: list[Middleware] | None = None
        """The middleware of every effect, the outermost last. It is configured when the first effect is chosen."""
        self._observers = Observers((one.found.name, one.plugin) for one in self._good())

    @classmethod
    def load(
        cls,
        *,
        blocked: Collection[str] = (),
        modules: Sequence[str] = (),
        entry_points: bool = True,
        tolerant: bool = False,
        environ: Mapping[str, str] | None = None,
        folder: Path | None = None,
        settings: Mapping[str, Settings] | None = None,
        around: Sequence[object] = (),
    ) -> Plugins:
        """Load every installed plugin that is not blocked, then those that ``modules`` names.

        What ships is loaded only when it is wanted. ``folder`` is where ``modules`` looks for files (default:
        the working folder); ``environ`` replaces the process's environment. ``settings`` has those of middleware,
        by its name; ``around`` is further middleware, as objects.

        Raises:
            PluginError: one of ``modules`` cannot be loaded, unless ``tolerant``; installed ones never raise.
        """
        environ = os.environ if environ is None else environ
        blocked = {*blocked, *blocked_by(environ)}
        found = discovery.entry_points() if entry_points and discovery.ALL not in blocked else []
        named = discovery.modules(modules, folder=folder or Path.cwd())
        loaded = [_load(one, blocked) for one in found]
        for one in named:
            result = _load(one, blocked)
            if result.state == "broken" and not tolerant:
                raise PluginError(f"--plugin {one.name}: {result.reason}")
            if not any(result.plugin is known.plugin for known in loaded if known.plugin is not None):
                loaded.append(result)
        return cls(
            loaded, discovery.builtins(), blocked=blocked, environ=environ, settings=settings, around=around
        )

    @property
    def observers(self) -> Observers:
        """Tells every plugin what happened."""
        return self._observers

    def effect_names(self) -> list[str]:
        """The effects that can be chosen, by name."""
        shipped = [name for name, found in self._builtins.items() if not found.is_blocked(self._blocked)]
        return sorted({*shipped, *(one.info.name for one in self._good() if _has_effect(one) and one.info)})

    def all(self) -> list[Loaded]:
        """Every plugin and what became of it: what ships first, then by distribution."""
        return [_load(found, self._blocked) for found in self._builtins.values()] + self._loaded

    def choose(self, name: str, settings: Settings | None = None) -> Effect:
        """The effect of that name, configured and checked; the same one for the same settings.

        Raises:
            EffectNotFound: no plugin has it.
            NotConfigured: it requires settings that are not given.
            PluginError: its plugin is broken or blocked, or its settings are wrong.
        """
        given = dict(settings or {})
        if name in self._chosen:
            before, effect = self._chosen[name]
            if before != given:
                raise PluginError(f"the effect {name!r} is in use with other settings: load the plugins anew")
            return effect
        one = self.find(name)
        assert one.info is not None
        assert one.hooks is not None
        effect = BoundEffect(
            one.plugin,
            one.info,
            one.hooks,
            given=given,
            environ=self._environ,
            middleware=self._configured_middleware(),
            secrets=self.redactor,
        )
        self._chosen[name] = (given, effect)
        return effect

    def namespace_of(self, name: str, settings: Settings | None = None) -> str | None:
        """Return the namespace of the effect's idempotency keys; None where it has no keys, or is not usable here."""
        try:
            one = self.find(name)
            assert one.info is not None
            assert one.hooks is not None
            if "effect_outcome" in one.hooks.implemented:
                return None
            return resolve(one.info, dict(settings or {}), self._environ, pure=False).get(NAMESPACE) or ""
        except PluginError:
            return None

    def lacks_settings(self, name: str, settings: Settings | None = None) -> str | None:
        """Say which settings the effect requires and has not, and how to give them; None where it has all.

        The effect is not configured, so none of its own code runs. What else is wrong with it is not looked at.
        """
        try:
            one = self.find(name)
            assert one.info is not None
            assert one.hooks is not None
            pure = "effect_outcome" in one.hooks.implemented
            resolve(one.info, dict(settings or {}), self._environ, pure=pure)
        except NotConfigured as error:
            return str(error)
        except PluginError:
            return None
        return None

    def close(self) -> None:
        """Close every chosen effect, the last one first."""
        for _, effect in reversed(self._chosen.values()):
            effect.close()
        for one in reversed(self._middleware or ()):
            one.close()
        self._middleware = []

    def is_middleware(self, name: str) -> bool:
        """Whether that is the name under which middleware has declared settings."""
        return any(one.info is not None and one.info.name == name for one in self._around_effects())

    @property
    def wraps(self) -> bool:
        """Whether there is any middleware."""
        return bool(self._around_effects() or self._around)

    def _around_effects(self) -> list[Loaded]:
        return [one for one in self._good() if one.hooks is not None and one.hooks.of_middleware]

    def _configured_middleware(self) -> list[Middleware]:
        if self._middleware is None:
            loaded = [(one.plugin, one.hooks, one.info) for one in self._around_effects()]
            self._middleware = [
                Middleware(
                    plugin,
                    hooks or read_hooks(plugin),
                    info,
                    given=self._settings.get(info.name, {}) if info else {},
                    environ=self._environ,
                    secrets=self.redactor,
                )
                for plugin, hooks, info in [*loaded, *((plugin, None, None) for plugin in self._around)]
            ]
        return self._middleware

    def _good(self) -> list[Loaded]:
        return [one for one in self._loaded if one.state == "loaded"]

    def ships(self, name: str) -> bool:
        """Whether the effect of that name comes with Fencepost itself."""
        return name in self._builtins

    def has(self, name: str) -> bool:
        """Whether a plugin has the effect or the middleware of that name, be it broken or blocked."""
        if self.is_middleware(name):
            return True
        try:
            self.find(name)
        except EffectNotFound:
            return False
        except PluginError:
            return True
        return True

    def find(self, name: str) -> Loaded:
        """The plugin that has the effect of that name, loaded but not configured.

        Raises:
            EffectNotFound: no plugin has it.
            PluginError: its plugin is broken or blocked.
        """
        for one in self._good():
            if one.info and one.info.name == name and _has_effect(one):
                return one
        if name in self._builtins:
            shipped = _load(self._builtins[name], self._blocked)
            if shipped.state == "loaded":
                return shipped
            raise PluginError(_why_not(name, shipped))
        for one in self._loaded:
            if one.state != "loaded" and name in (one.found.name, one.info.name if one.info else None):
                raise PluginError(_why_not(name, one))
        names = ", ".join(self.effect_names()) or "none"
        raise EffectNotFound(
            f"there is no effect {name!r}; installed are: {names}. Install the package that has it, or name its "
            "module with --plugin; `fencepost plugins` shows what was found"
        )


def _has_effect(one: Loaded) -> bool:
    return one.hooks is not None and one.hooks.of_effect


def blocked_by(environ: Mapping[str, str]) -> set[str]:
    """The names in ``FENCEPOST_NO_PLUGINS``."""
    return {name for name in re.split(r"[\s,]+", environ.get(BLOCKED_ENV, "")) if name}


def _load(found: Found, blocked: Collection[str]) -> Loaded:
    if found.is_blocked(blocked):
        return Loaded(found, "blocked", f"by --no-plugin or {BLOCKED_ENV}")
    if found.error is not None:
        return Loaded(found, "broken", found.error)
    try:
        plugin = found.load()
    except PluginError as error:
        return Loaded(found, "broken", str(error))
    except BaseException as error:  # importing runs an author's code
        if not is_fault(error):
            raise
        return Loaded(found, "broken", f"importing it failed: {headline(error)}")
    hooks: Hooks | None = None
    info: EffectInfo | None = None
    try:
        check_api(plugin)
        hooks = read_hooks(plugin)
        relay = bind(plugin).hook
        if "effect_info" in hooks.implemented:
            info = check_effect(relay.effect_info(), hooks)
    except PluginError as error:
        return Loaded(found, "broken", str(error), plugin, hooks)
    except BaseException as error:  # effect_info is an author's code too
        if not is_fault(error):
            raise
        return Loaded(found, "broken", f"effect_info failed: {headline(error)}", plugin, hooks)
    return Loaded(found, "loaded", "", plugin, hooks, info)


def _refuse_doubles(loaded: Sequence[Loaded], taken: Collection[str]) -> list[Loaded]:
    """Break every plugin whose effect's name another one has too: to pick one of them would be a guess."""
    owners: dict[str, list[Loaded]] = {}
    for one in loaded:
        if one.info and one.state == "loaded":
            owners.setdefault(one.info.name, []).append(one)
    result = []
    for one in loaded:
        if one.info and one.state == "loaded":
            name = one.info.name
            others = [_called(other) for other in owners[name] if other is not one]
            others += ["fencepost itself"] if name in taken else []
            if others:
                reason = f"the effect name {name!r} is taken by {', '.join(others)} too: block one with --no-plugin"
                one = Loaded(one.found, "broken", reason, one.plugin, one.hooks, one.info)
        result.append(one)
    return result


def _called(one: Loaded) -> str:
    return f"{one.found.name!r}" + (f" of {one.found.distribution}" if one.found.distribution else "")


def _why_not(name: str, one: Loaded) -> str:
    if one.state == "blocked":
        return f"the effect {name!r} is blocked {one.reason}"
    return f"the effect {name!r} cannot be used, its plugin {_called(one)} is broken: {one.reason}"
