"""Who may import whom: arrows run down, from the command line to the job."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "plugins", "effects")

VALUES = {
    "core.arguments",
    "core.clock",
    "core.documents",
    "core.effect",
    "core.errors",
    "core.filters",
    "core.inputs",
    "core.inspection",
    "core.job",
    "core.keys",
    "core.overview",
    "core.receipts",
    "core.sealing",
    "core.spans",
    "core.texts",
}
"""Pure values and rules, which every room may use."""

LAYERS: list[tuple[str, set[str]]] = [
    # (whose imports, what they may import of Fencepost); the first line that fits counts.
    ("core.errors", set()),
    ("core.texts", set()),
    ("core.spans", {"core.errors", "core.inputs"}),
    ("core.clock", set()),
    ("core.crash", set()),
    ("core.keys", {"core.inputs"}),
    ("core.job", {"core.errors"}),
    ("core.documents", {"core.errors"}),
    ("core.fields", {"core.job"}),
    ("core.policy", {"core.job"}),
    ("core.filters", {"core.job"}),
    ("core.arguments", {"core.errors", "core.inputs", "core.job", "core.receipts"}),
    ("core.overview", {"core.job"}),
    ("core.sealing", {"core.errors"}),
    ("core.inspection", {"core.inputs", "core.job", "core.receipts", "core.sealing"}),
    ("core.inputs", {"core.documents", "core.errors", "core.job"}),
    ("core.receipts", VALUES),
    ("core.effect", VALUES),
    ("core.scheduler", VALUES | {"core.ledger", "core.policy"}),
    ("core.ledger", VALUES),
    ("core.explain", VALUES | {"core.ledger", "core.policy"}),
    ("core.ledgers", VALUES | {"core.ledger", "core.ledgers", "core.crash", "core.fields", "core.scheduler"}),
    ("core.stores", VALUES | {"core.ledger", "core.ledgers"}),
    ("core.cli", {"core", "plugins", "effects.receiver", "effects.count"}),
    ("core.testing", {"core"}),
    ("core", {"core"}),
    ("plugins.testing", {"core", "plugins"}),
    ("plugins", VALUES | {"plugins", "effects"}),
    ("effects.receiver", VALUES | {"plugins", "effects"}),
    ("effects", VALUES | {"plugins", "effects"}),
]

EXCEPTIONS = {
    # plugins tell of a worker's events, whose shape the worker's own module defines
    ("plugins", "core.events"),
    # the parts of core that come together only in the command line
    ("core.worker", "core.cli"),
}


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
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    allowed = next(allowed for layer, allowed in LAYERS if within(module, {layer}))
    wrong = [
        f"{MODULES[module]}:{line} imports {name}"
        for name, line in imports(module, MODULES[module])
        if not within(name, allowed)
        and not within(name, {module})
        and not any(within(module, {a}) and within(name, {b}) for a, b in EXCEPTIONS)
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


def test_the_worker_knows_no_plugin_system_and_no_kind_of_ledger() -> None:
    for module in (
        "core.worker",
        "core.turns",
        "core.attempts",
        "core.heartbeats",
        "core.housekeeping",
        "core.pacing",
    ):
        assert not any(
            within(name, {"plugins", "core.ledgers"}) for name, _ in imports(module, MODULES[module])
        )


def test_a_kind_of_ledger_knows_no_other_and_what_they_share_knows_none() -> None:
    """Shared by all: the modules of ``core.ledgers`` itself; by the SQL ledgers: ``core.ledgers.sql``."""
    kinds = {"core.ledgers.directory", "core.ledgers.sqlite", "core.ledgers.postgres"}
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if within(module, {"core.ledgers"})
        for name, _ in imports(module, path)
        if within(name, kinds - {kind for kind in kinds if within(module, {kind})})
        or (within(name, {"core.ledgers.sql"}) and within(module, {"core.ledgers.directory"}))
    ]
    assert wrong == []
