"""Where plugins are found: what ships, entry points of installed distributions, modules named by the user.

Nothing is imported here: a ``Found`` says how to import its plugin, so that one that is blocked never runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..core.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP: Final = "fencepost"
SHIPPED: Final = "fencepost"
"""The distribution that this program itself comes from."""
_SECTION: Final = f"[{GROUP}]"
_ENTRY_POINTS: Final = "entry_points.txt"
ALL: Final = "all"
"""Blocks every plugin that is not shipped."""

BUILTINS: Final[Mapping[str, str]] = {
    "count": "fencepost.effects.count",
    "remote": "fencepost.effects.remote:Remote",
}
"""Effects that ship, by name: there without any metadata, and imported only when one is wanted.

A module; or ``module:class`` for one that holds something open, of which each use gets an object of its own.
"""

OPTIONAL: Final[Mapping[str, str]] = {"timing": "fencepost.plugins.timing", "log": "fencepost.plugins.log"}
"""Middleware and observers that ship, for ``--plugin NAME``."""


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin that could be loaded."""

    name: str
    load: Callable[[], object]
    distribution: str | None = None
    version: str | None = None
    error: str | None = None
    """Why it cannot even be tried."""

    def is_blocked(self, blocked: Collection[str]) -> bool:
        """Whether it is blocked by its name, by its distribution's, or as one of ``all`` that are not shipped."""
        if self.name in blocked or (ALL in blocked and self.distribution != SHIPPED):
            return True
        return self.distribution is not None and _normal(self.distribution) in map(_normal, blocked)


def builtins() -> list[Found]:
    """The effects that ship."""
    return [Found(name, _import(module), SHIPPED) for name, module in BUILTINS.items()]


def entry_points() -> list[Found]:
    """The plugins of installed distributions, in order of distribution and name.

    A distribution whose metadata cannot be read is left out of it without harm to the others.
    """
    if _nothing_installed():
        return []
    from importlib.metadata import distributions

    found: list[Found] = []
    seen: set[str] = set()
    for distribution in distributions():
        try:
            if _SECTION not in (distribution.read_text(_ENTRY_POINTS) or ""):
                continue
            points = [point for point in distribution.entry_points if point.group == GROUP]
            name, version = distribution.metadata["Name"] or "?", distribution.version
        except Exception as error:  # noqa: BLE001 - metadata that anybody wrote: reported, the others go on
            found.append(_unreadable(distribution, error))
            continue
        if _normal(name) in seen:  # an older copy further down the path, which Python does not import either
            continue
        seen.add(_normal(name))
        found += [
            Found(point.name, _entry(point), name, version)
            for point in points
            if BUILTINS.get(point.name) != point.value
        ]
    return sorted(found, key=lambda one: (_normal(one.distribution or ""), one.name))


def _nothing_installed() -> bool:
    """Whether the folders on the import path show that no distribution has a plugin.

    Most commands then need no importlib.metadata, whose import takes longer than all else here. Where the path has
    something else than plain folders, the answer is no, and importlib.metadata finds out.
    """
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return False
    for folder in (entry or "." for entry in sys.path):
        if os.path.isfile(folder) or folder.endswith(".egg"):
            return False
        try:
            names = os.listdir(folder)
        except OSError:  # not there, as many entries of the path are not
            continue
        for name in names:
            stem, _, kind = name.rpartition(".")
            if kind in ("dist-info", "egg-info") and stem.partition("-")[0] != SHIPPED:
                try:
                    with open(os.path.join(folder, name, _ENTRY_POINTS), "rb") as file:
                        if _SECTION.encode() in file.read():
                            return False
                except OSError:  # most distributions have no entry points
                    continue
    return True


def modules(names: Sequence[str], *, folder: Path) -> list[Found]:
    """What ``--plugin`` names: one that ships, a module, or a file in ``folder``; ``:object`` after it is one in it."""
    found = []
    for name in dict.fromkeys(names):
        if name in OPTIONAL:
            found.append(Found(name, _import(OPTIONAL[name]), SHIPPED))
        elif name.partition(":")[0].endswith(".py") or "/" in name:
            file, _, attribute = name.partition(":")
            path = folder / file
            found.append(Found(path.stem, _object(_file(path), attribute)))
        else:
            found.append(Found(name, _module(name, folder)))
    return found


def _unreadable(distribution: Distribution, error: Exception) -> Found:
    path = str(getattr(distribution, "_path", "") or "a distribution")
    reason = f"the metadata in {path} cannot be read: {type(error).__name__}: {error}"
    return Found(Path(path).name, _import(""), error=reason)


def _import(target: str) -> Callable[[], object]:
    def load() -> object:
        module_name, _, factory = target.partition(":")
        module = importlib.import_module(module_name)
        return getattr(module, factory)() if factory else module

    return load


def _entry(point: EntryPoint) -> Callable[[], object]:
    return lambda: point.load()


def _file(path: Path, *, name: str | None = None) -> Callable[[], object]:
    # Not the bare stem: a file that is called like a module must not take that module's place.
    module_name = name or f"fencepost_plugin_{path.stem}"

    def load() -> object:
        if not path.is_file():
            raise PluginError(f"there is no file {path}")
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise PluginError(f"{path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses and pickling look their module up here
        if str(path.parent) not in sys.path:
            # The file may import its siblings. They come last, so that none takes the place of an installed module.
            sys.path.append(str(path.parent))
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
        return module

    return load


def _object(load: Callable[[], object], attribute: str) -> Callable[[], object]:
    """Load a module, and take an object in it where one is named."""

    def load_object() -> object:
        plugin = load()
        for part in attribute.split(".") if attribute else ():
            plugin = getattr(plugin, part)
        return plugin

    return load_object


def _module(name: str, folder: Path) -> Callable[[], object]:
    module_name, _, attribute = name.partition(":")

    def load() -> object:
        local = folder / (module_name.replace(".", "/") + ".py")
        if module_name.partition(".")[0] in sys.stdlib_module_names:
            raise PluginError(
                f"{module_name!r} is a module of Python's standard library, not a plugin; for a file of that name "
                f"write {local.name}, or give it another name"
            )
        try:
            known = module_name in sys.modules or importlib.util.find_spec(module_name) is not None
        except (ImportError, ValueError):
            known = False
        if not known and not local.is_file():
            raise PluginError(f"there is no module {module_name!r}, and no file {local}")
        return importlib.import_module(module_name) if known else _file(local, name=module_name)()

    return _object(load, attribute)


def _normal(distribution: str) -> str:
    return distribution.lower().replace("_", "-").replace(".", "-")
