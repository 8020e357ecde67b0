"""Who may import whom: arrows run down, from the command line to the job."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "plugins", "effects")

LAYERS: dict[str, set[str]] = {
    # Whose imports, and what they may import of Fencepost beside their own room.
    "core.errors": set(),
    "core.model": {"core.errors"},
    "core.config": {"core.errors", "core.model"},
    "core.ledgers": {"core.errors", "core.model"},
    "core.worker": {"core.errors", "core.model", "core.ledgers.protocol"},
    "core.doctor": {"core.errors", "core.model", "core.ledgers"},
    "core.testing": {"core.errors", "core.model", "core.ledgers"},
    "core.stores": {"core.errors", "core.config", "core.ledgers"},
    "core.composition": {"core.errors", "core.model", "core.config", "plugins"},
    "core.producer": {
        "core.errors",
        "core.model",
        "core.config",
        "core.stores",
        "core.composition",
        "core.ledgers",
    },
    "core.cli.ui": {
        "core.errors",
        "core.model",
        "core.config",
        "core.stores",
        "core.ledgers",
        "core.doctor",
        "plugins.discovery",
    },
    "core.cli": {"core", "plugins", "effects"},
    "core": {"core"},
    "plugins.testing": {"core", "plugins"},
    "plugins": {"core.errors", "core.model", "effects"},
    "effects": {"core.errors", "core.model", "plugins"},
}
"""The rooms from the ground up: arrows run only to rooms that are named, and there are no exceptions."""


def modules() -> Iterator[tuple[str, Path]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """What a module imports of Fencepost, as dotted names below ``fencepost``, with the line."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                name = ".".join([*base, *(node.module or "").split(".")]).rstrip(".")
            elif (node.module or "").startswith("fencepost."):
                name = (node.module or "").removeprefix("fencepost.")
            else:
                continue
            for alias in node.names:
                full = f"{name}.{alias.name}"
                yield (full if is_module(full) else name), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("fencepost."):
                    yield alias.name.removeprefix("fencepost."), node.lineno
                assert alias.name.split(".")[0] not in ROOMS, f"{path}:{node.lineno} imports a second copy"


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or path.is_dir()


def within(name: str, allowed: set[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


MODULES = dict(modules())


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_its_own_room_and_those_below_it(module: str) -> None:
    room = max((room for room in LAYERS if within(module, {room})), key=len)
    wrong = [
        f"{MODULES[module]}:{line} imports {name}"
        for name, line in imports(module, MODULES[module])
        if not within(name, LAYERS[room] | {room})
    ]
    assert wrong == []


def test_nothing_below_the_command_line_imports_it() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if not within(module, {"core.cli"})
        for name, _ in imports(module, path)
        if within(name, {"core.cli"})
    ]
    assert wrong == []


def test_a_kind_of_ledger_knows_no_other_and_what_they_share_knows_none() -> None:
    """Shared by all: the modules of ``core.ledgers`` itself; by the SQL ledgers: ``core.ledgers.sql``."""
    kinds = {"core.ledgers.directory", "core.ledgers.sqlite", "core.ledgers.postgres"}
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if within(module, {"core.ledgers"}) and module != "core.ledgers.kinds"  # it names every kind
        for name, _ in imports(module, path)
        if within(name, kinds - {kind for kind in kinds if within(module, {kind})})
        or (within(name, {"core.ledgers.sql"}) and within(module, {"core.ledgers.directory"}))
    ]
    assert wrong == []


def test_an_import_inside_a_function_of_the_command_line_says_why() -> None:
    """A command is imported when it is used: only what some of its runs need is worth importing later."""
    silent = []
    for module, path in MODULES.items():
        if not within(module, {"core.cli"}):
            continue
        source = path.read_text("utf-8")
        lines = ["", *source.split("\n")]
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef):
                local = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
                if local and "#" not in lines[local[0].lineno] + lines[local[0].lineno - 1]:
                    silent.append(f"{path}:{local[0].lineno}")
    assert silent == []
