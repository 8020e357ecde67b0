"""What ``fencepost plugins`` shows: each plugin with its state, and why it is not loaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .discovery import OPTIONAL, SHIPPED
from .manager import Loaded, Plugins

HEADINGS = ("plugin", "effect", "version", "distribution", "delivery", "state", "hooks")


def rows(plugins: Plugins, *, all: bool = False) -> list[dict[str, Any]]:
    """One row for each plugin; those that ship only if ``all``."""
    listed = [
        _row(one)
        for one in plugins.all()
        if all or one.found.distribution != SHIPPED or one.state == "broken"
    ]
    if all:
        loaded = {row["name"] for row in listed}
        listed += [_available(name) for name in OPTIONAL if name not in loaded]
    return listed


def table(listed: Iterable[dict[str, Any]]) -> str:
    """The rows for people: a line each, then the reasons of those that are not loaded."""
    listed = list(listed)
    if not listed:
        return "no plugins are installed; --all shows what ships\n"
    cells = [
        [
            row["name"],
            row["effect"] or "-",
            row["version"] or "-",
            row["distribution"] or "-",
            row["delivery"] or "-",
            row["state"],
            " ".join(row["hooks"]) or "-",
        ]
        for row in listed
    ]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [list(HEADINGS), *cells]
    ]
    reasons = [f"{row['name']} is {row['state']}: {row['reason']}" for row in listed if row["reason"]]
    return "\n".join([*lines, *([""] if reasons else []), *reasons]) + "\n"


def called(row: dict[str, Any]) -> str:
    """The plugin's name, and where it comes from."""
    origin = " ".join(part for part in (row["distribution"], row["version"]) if part)
    return f"{row['name']} (of {origin})" if origin else f"{row['name']}"


def _row(one: Loaded) -> dict[str, Any]:
    info = one.info
    return {
        "name": one.found.name,
        "effect": info.name if info else None,
        "summary": info.summary if info else None,
        "effect_version": info.version if info else None,
        "delivery": info.delivery if info else None,
        "settings": sorted(info.settings) if info else [],
        "distribution": one.found.distribution,
        "version": one.found.version or _shipped_version(one.found.distribution),
        "hooks": one.hooks.names if one.hooks else [],
        "state": one.state,
        "reason": one.reason or None,
    }


def _shipped_version(distribution: str | None) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    if distribution != SHIPPED:
        return None
    try:
        return version(SHIPPED)
    except PackageNotFoundError:  # it runs from a folder, without having been installed
        return None


def _available(name: str) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(("effect", "summary", "effect_version", "delivery"))
    return {
        "name": name,
        **empty,
        "settings": [],
        "distribution": SHIPPED,
        "version": _shipped_version(SHIPPED),
        "hooks": [],
        "state": "available",
        "reason": f"it ships, and works only where it is asked for: --plugin {name}",
    }
