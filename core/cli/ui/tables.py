"""Tables for people: no wider than the terminal, in colour unless NO_COLOR is set.

Commands import this module only when they draw, because rich is slow to load.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final, Literal

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

STATE_STYLES: Final = {
    "queued": "blue",
    "running": "cyan",
    "completed": "green",
    "dead": "red",
    "held": "yellow",
    "paused": "yellow",
}
GAP: Final = 2
"""The blanks between two columns."""
_BIDI: Final = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and how it gets narrower where the terminal is narrow."""

    title: str
    right: bool = False
    too_wide: Literal["stay", "cut", "fold"] = "stay"
    """How a cell that is too wide is shown. An id is folded, because half an id is of no use; a text is cut."""
    least: int = 6


Cell = str | Text


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, empty: str) -> None:
    """Draw the rows on stdout, or print ``empty`` where there are none."""
    out = console()
    if rows:
        out.print(table(columns, rows, width=out.width))
    else:
        out.print(Text(empty))


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, width: int) -> RenderableType:
    """Make the table for rich, so that it fits ``width`` columns of the terminal."""
    cells = _texts(rows)
    widths = _fit(columns, cells, width)
    drawn = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for column, size in zip(columns, widths, strict=True):
        fold = column.too_wide == "fold"
        drawn.add_column(
            column.title,
            width=size,
            justify="right" if column.right else "left",
            no_wrap=not fold,
            overflow="fold" if fold else "ellipsis",
        )
    for row in cells:
        drawn.add_row(*row)
    return drawn


def state(name: str) -> Text:
    """Return a state's name in its colour."""
    return Text(name, style=STATE_STYLES.get(name, ""))


def visible(text: str) -> str:
    """Return the text on one line, with every character escaped that could steer the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if unicodedata.category(char) not in ("Cc", "Cs") and char not in _BIDI else _escaped(char)
        for char in text
    )


def console(file: IO[str] | None = None, *, width: int | None = None) -> Console:
    """Make a console that draws on ``file``: stdout unless it is given."""
    return Console(
        file=file or sys.stdout, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False
    )


def _escaped(char: str) -> str:
    return {"\n": "⏎ ", "\t": " "}.get(char) or char.encode("unicode_escape").decode("ascii")


def _texts(rows: Sequence[Sequence[Cell]]) -> list[list[Text]]:
    return [[cell if isinstance(cell, Text) else Text(visible(cell)) for cell in row] for row in rows]


def natural_width(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> int:
    """Return how wide the table is where nothing is cut or folded."""
    return sum(_natural_widths(columns, _texts(rows))) + GAP * (len(columns) - 1)


def _natural_widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> list[int]:
    return [
        max([cell_len(column.title), *(cell_len(row[place].plain) for row in rows)])
        for place, column in enumerate(columns)
    ]


def _fit(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> list[int]:
    widths = _natural_widths(columns, rows)
    # The last column that may be cut gives first: it is the one with the most words.
    for how in ("cut", "fold"):
        for place in reversed(range(len(columns))):
            over = sum(widths) + GAP * (len(columns) - 1) - width
            column = columns[place]
            if over > 0 and column.too_wide == how:
                widths[place] = max(widths[place] - over, min(column.least, widths[place]))
    return widths


def titled_rows() -> Table:
    """An empty table of a bold title and a text that may take several lines, for each row."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    return grid
