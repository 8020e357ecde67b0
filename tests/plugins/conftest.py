"""Plugins as people have them: real distributions on the import path, real modules in real files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from fencepost.plugins.manager import Plugins

IMPORTS = "from fencepost.plugins import *\nfrom fencepost.plugins import EffectInfo, Setting, hookimpl\n"


class Site:
    """A folder on the import path into which distributions can be put, as pip would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def module(self, name: str, source: str) -> Path:
        """A module with this source, after the imports of the door."""
        path = self.folder / f"{name}.py"
        path.write_text(IMPORTS + dedent(source))
        return path

    def install(
        self,
        distribution: str,
        entry_points: Mapping[str, str],
        *,
        version: str = "1.0",
        group: str = "fencepost",
    ) -> Path:
        """The metadata of a distribution with these entry points."""
        folder = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"[{group}]", *(f"{name} = {value}" for name, value in entry_points.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
        return folder

    def effect(self, name: str, *, distribution: str | None = None, source: str | None = None) -> None:
        """A distribution with one effect of that name, pure unless ``source`` says otherwise."""
        module = f"plugin_{name.replace('-', '_')}"
        self.module(module, source or pure(name))
        self.install(distribution or f"fencepost-{name}", {name: module})


def pure(name: str) -> str:
    """The source of a pure effect that says its own name."""
    return dedent(f"""
        @hookimpl
        def effect_info():
            return EffectInfo(name={name!r}, summary="Says its name.")

        @hookimpl
        def effect_outcome(text):
            return {{"by": {name!r}, "text": text}}
        """)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder on the import path; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delenv("FENCEPOST_NO_PLUGINS", raising=False)
    before = set(sys.modules)
    yield Site(folder)
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def load_source(site: Site) -> object:
    """Loads one plugin from its source, by ``--plugin``; gives the loaded plugins."""

    def load(source: str, *, tolerant: bool = False) -> Plugins:
        path = site.module("local_plugin", source)
        return Plugins.load(modules=[str(path)], entry_points=False, tolerant=tolerant)

    return load


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print what people see."""
    monkeypatch.setattr("fencepost.core.cli.plugins.wants_json", lambda as_json: as_json)
