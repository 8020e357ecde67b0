"""What benchmarks share: slices in shuffled order, medians, and a table that says what passed."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Measure = Callable[[Path], float]
"""Measures once, on a new folder."""

BAR_WIDTH = 24


def medians(measures: Mapping[str, Measure], slices: int) -> dict[str, float]:
    """Run every measure so often, in an order that is shuffled each time, each run in a folder of its own."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(slices):
        for name in random.sample(sorted(measures), len(measures)):
            with tempfile.TemporaryDirectory(dir=".") as folder:
                found[name].append(measures[name](Path(folder)))
    return {name: statistics.median(figures) for name, figures in found.items()}


def percentile(figures: list[float], percent: int) -> float:
    """The figure below which so many of a hundred lie."""
    return statistics.quantiles(figures, n=100)[percent - 1]


def compiled(folder: Path) -> dict[str, str]:
    """The environment of a program as it is when installed: compiled once, into that folder, not at every start."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder)}


@dataclass(frozen=True)
class Line:
    """One line of the table: a figure, and the bar that it is held to."""

    what: str
    figure: float
    bar: float
    at_most: bool = False
    """Whether the bar is a ceiling rather than a floor."""
    unit: str = "×"
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the bar is kept."""
        return self.figure <= self.bar if self.at_most else self.figure >= self.bar

    def __str__(self) -> str:
        filled = min(BAR_WIDTH, round(self.figure / (2 * self.bar) * BAR_WIDTH))
        drawn = ["█" if place < filled else "·" for place in range(BAR_WIDTH)]
        drawn[BAR_WIDTH // 2] = "|"  # the bar itself, in the middle
        sign = "≤" if self.at_most else "≥"
        verdict = "pass" if self.passed else "MISS"
        return (
            f"  {self.what:44} {self.figure:7.2f} {self.unit:2} {''.join(drawn)} {sign} {self.bar:<5g} {verdict}"
            + (f"   {self.detail}" if self.detail else "")
        )
