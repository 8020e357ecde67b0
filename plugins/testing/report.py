"""The results of a run for people: a table, and the sentences."""

from __future__ import annotations

from collections.abc import Sequence

from .results import Result, sentences


def table(results: Sequence[Result]) -> str:
    """One line for each row of the matrix."""
    cells = [("point", "seen", "job", "promise")] + [
        (result.point, "-" if result.seen is None else str(result.seen), result.state, _verdict(result))
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"
        for line in cells
    )


def documents(results: Sequence[Result]) -> list[dict[str, object]]:
    """The same for a program."""
    return [
        {"point": result.point, "seen": result.seen, "job": result.state, "promise": _verdict(result)}
        for result in results
    ]


def failures(results: Sequence[Result]) -> str:
    """Where the promise was not kept, with the remedies."""
    return "\n".join(sentences(results))


def _verdict(result: Result) -> str:
    if result.failure is None:
        return "kept"
    return "broken, and accepted" if result.accepted else "BROKEN"
