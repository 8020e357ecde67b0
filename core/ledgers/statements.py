"""Named SQL statements, read from the ``.sql`` file that lies beside the ledger which runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"^-- name: (\w+(?:\[_all\])?)$", re.MULTILINE)
_EITHER: Final = re.compile(r"\[\[(.*?)(?:\|(.*?))?\]\]", re.DOTALL)
_ALL: Final = "_all"


def load(path: Path) -> Mapping[str, str]:
    """The statements of a file by name: ``-- name: claim`` starts one, the next such line ends it.

    ``-- name: pick[_all]`` starts two statements: ``pick`` for named queues, ``pick_all`` for all queues. In them
    ``[[a|b]]`` is ``a`` for the first and ``b`` for the second, and ``{_all}`` is the end of the second's name.
    """
    head, *parts = _NAME.split(path.read_text("utf-8"))
    found = [
        statement
        for name, body in zip(parts[::2], parts[1::2], strict=True)
        for statement in _forms(name, body)
    ]
    names = [name for name, _ in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    stray = [line for line in head.splitlines() if line.strip() and not line.startswith("--")]
    if twice or stray:
        raise ValueError(
            f"{path.name}: " + (f"{twice[0]!r} stands twice" if twice else f"unnamed: {stray[0]}")
        )
    return dict(found)


def _forms(name: str, body: str) -> Iterator[tuple[str, str]]:
    body = body.strip()
    if not name.endswith(f"[{_ALL}]"):
        yield name, body
        return
    name = name.removesuffix(f"[{_ALL}]")
    yield name, _EITHER.sub(r"\1", body).replace(f"{{{_ALL}}}", "")
    yield name + _ALL, _EITHER.sub(lambda either: either[2] or "", body).replace(f"{{{_ALL}}}", _ALL)
