"""Named SQL statements, read from the ``.sql`` file that lies beside the ledger which runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(path: Path) -> Mapping[str, str]:
    """The statements of a file by name: ``-- name: claim`` starts one, the next such line ends it."""
    head, *parts = _NAME.split(path.read_text("utf-8"))
    names, bodies = parts[::2], parts[1::2]
    statements = {name: body.strip() for name, body in zip(names, bodies, strict=True)}
    twice = sorted({name for name in names if names.count(name) > 1})
    stray = [line for line in head.splitlines() if line.strip() and not line.startswith("--")]
    if twice or stray:
        raise ValueError(
            f"{path.name}: " + (f"{twice[0]!r} stands twice" if twice else f"unnamed: {stray[0]}")
        )
    return statements
