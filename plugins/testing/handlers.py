"""Which kinds of time-outs the author's code expects: the classes that it catches around a line.

A library or a provider has time-outs of its own classes. The kit can raise them because the code names them.
"""

from __future__ import annotations

import ast
import linecache
import re
from types import FrameType
from typing import Final, NamedTuple

_TIME_OUT: Final = re.compile(r"time_?d?_?out", re.IGNORECASE)
_NOT_SENT: Final = re.compile(r"connect|pool", re.IGNORECASE)
"""Time-outs of these names say that nothing was sent; after a call that has returned they would be a lie."""


class _Try(NamedTuple):
    """The body of a ``try`` by its lines, and what is caught there, as dotted names."""

    first: int
    last: int
    names: tuple[str, ...]


class Handlers:
    """Finds the ``except`` clauses around the line that a frame is at."""

    def __init__(self) -> None:
        self._files: dict[str, list[_Try]] = {}

    def time_outs(self, frame: FrameType) -> list[type[Exception]]:
        """The classes of time-outs, other than Python's own, that are caught around the line that runs now."""
        path, line = frame.f_code.co_filename, frame.f_lineno
        if path not in self._files:
            self._files[path] = _tries(path)
        names = {name for one in self._files[path] if one.first <= line <= one.last for name in one.names}
        kinds = [_resolved(name, frame) for name in sorted(names)]
        return [kind for kind in kinds if kind is not None and kind is not TimeoutError]


def made_like(kind: type[Exception], fault: Exception) -> Exception:
    """An exception of that class with the message of the fault, whatever its constructor wants."""
    try:
        return kind(str(fault))
    except Exception:  # noqa: BLE001 - an author's constructor; the class alone matters to who catches it
        made = kind.__new__(kind)
        made.args = (str(fault),)
        return made


def _tries(path: str) -> list[_Try]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):  # a file that was changed since it was imported
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            last = node.body[-1].end_lineno or node.body[-1].lineno
            names = tuple(name for handler in node.handlers for name in _caught(handler.type))
            found.append(_Try(node.body[0].lineno, last, names))
    return found


def _caught(expression: ast.expr | None) -> list[str]:
    if isinstance(expression, ast.Tuple):
        return [name for member in expression.elts for name in _caught(member)]
    if expression is None:
        return []
    name = ast.unparse(expression)
    short = name.rpartition(".")[2]
    return [name] if _TIME_OUT.search(short) and not _NOT_SENT.search(short) else []


def _resolved(name: str, frame: FrameType) -> type[Exception] | None:
    first, *rest = name.split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first, frame.f_builtins.get(first)))
    for part in rest:
        value = getattr(value, part, None)
    return value if isinstance(value, type) and issubclass(value, Exception) else None
