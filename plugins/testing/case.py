"""One effect in the crash matrix: what an author's test says, and what it is told."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ...core.model.documents import JSON
from ...core.model.effect import EffectInfo
from ..manager import Plugins
from ..rules import NAMESPACE
from ..settings import Given, declared
from . import points as matrix
from .points import POINTS, Point
from .processes import KitFailed
from .purity import impurity
from .scenarios import Scenario, Subject
from .verdicts import judge

DEFAULT_TEXT: Final = "hello from the crash kit"


class CrashKitError(AssertionError):
    """The effect does not keep its promise; a sentence for each row of the matrix that shows it."""


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the matrix, played."""

    point: str
    says: str
    seen: int | None
    state: str
    failure: str | None = None
    accepted: str | None = None
    """Why the author accepts the failure."""

    @property
    def ok(self) -> bool:
        """Whether the promise was kept, or the author accepts that it was not."""
        return self.failure is None or self.accepted is not None


def sentences(results: Sequence[Result]) -> list[str]:
    """What failed, at which points, and the remedy: once for all points that fail alike."""
    points: dict[str, list[str]] = {}
    for result in results:
        if result.failure is not None and not result.ok:
            points.setdefault(result.failure, []).append(result.says)
    return [f"{'; '.join(says)}: {failure}." for failure, says in points.items()]


@dataclass
class EffectCase:
    """An effect, and how to see from outside what it did.

    Args:
        effect: its name.
        folder: where ledgers may be made; the fixture gives ``tmp_path``.
        observed: counts how often the outside world saw the effect; each job adds one. Acting effects need it.
        text: what the jobs carry.
        settings: the effect's; a path may be given as such. A required namespace that is not given is made up.
        plugins: modules or files to load besides the installed plugins.
        reset: called before each row, for a world in which jobs would hide one another.
        accept: rows that may fail, each with the reason why that is acceptable.
        ledger: the kind of ledger that the jobs live in.
    """

    effect: str
    folder: Path
    observed: Callable[[], int] | None = None
    text: str = DEFAULT_TEXT
    settings: Mapping[str, JSON | Given | os.PathLike[str]] = field(default_factory=dict)
    plugins: Sequence[str] = ()
    reset: Callable[[], None] | None = None
    accept: Mapping[str, str] = field(default_factory=dict)
    ledger: Literal["directory", "sqlite"] = "directory"

    def __post_init__(self) -> None:
        found = Plugins.load(modules=self.plugins).find(self.effect)
        assert found.info is not None
        assert found.hooks is not None
        self.info: EffectInfo = found.info
        self.pure: bool = "effect_outcome" in found.hooks.implemented
        if not self.pure and self.observed is None:
            raise TypeError(
                f"the effect {self.effect!r} changes something outside: give observed=, which counts how often the "
                "outside world saw it"
            )
        for name in self.accept:
            self._point(name)
        self._marks: list[str] | None = None
        # Jobs of one run never meet those of another one in a world that remembers.
        self._run = secrets.token_hex(4)
        self._played = 0

    def points(self) -> list[Point]:
        """The rows that concern this effect, in the order of an attempt."""
        kinds = {"all", "pure"} if self.pure else {"all", "acting"} | ({self.info.delivery} & {"probed"})
        return [point for point in POINTS.values() if point.concerns in kinds]

    def check(self, *names: str) -> list[Result]:
        """Play these rows, or all; the results, if the promise was kept in each.

        Raises:
            CrashKitError: it was not; the message has a sentence for each row that failed.
        """
        __tracebackhide__ = True  # the author's test is at fault, and no line of this file
        results = self.results(*names)
        failed = sentences(results)
        if failed:
            raise CrashKitError(
                f"the effect {self.effect!r} does not keep its promise (delivery {self.info.delivery!r}).\n\n"
                + "\n\n".join(failed)
            )
        return results

    def results(self, *names: str) -> list[Result]:
        """Play these rows, or all, and judge each; nothing is raised for a promise that was not kept."""
        rows = [self._point(name) for name in names] if names else self.points()
        return [result for point in rows for result in self._rows_of(point)]

    def _rows_of(self, point: Point) -> list[Result]:
        if point is matrix.PURE:
            return [self._pure()]
        if point is not matrix.IN_EFFECT:
            return [self._row(point, None)]
        if self._marks is None:
            self._row(matrix.UNDISTURBED, None)
        return [self._row(point, mark) for mark in self._marks or ()]

    def _row(self, point: Point, mark: str | None) -> Result:
        name = f"{point.name}:{mark}" if mark else point.name
        says = f"{point.says} at {mark!r}" if mark else point.says
        if self.reset is not None:
            self.reset()
        self._played += 1
        id = f"case-{self._run}-{self._played}"
        store = self.folder / (id + (".db" if self.ledger == "sqlite" else ""))
        try:
            played = Scenario(self._subject(), point, mark=mark, id=id, store=str(store)).play()
        except KitFailed as error:
            return Result(name, says, None, "-", f"it could not be played: {error}")
        if point is matrix.UNDISTURBED:
            self._marks = played.marks()
        failure = judge(self.info, point, played, pure=self.pure)
        accepted = self.accept.get(name, self.accept.get(point.name)) if failure else None
        return Result(name, says, played.seen, played.state, failure, accepted)

    def _pure(self) -> Result:
        failure = impurity(self._subject())
        accepted = self.accept.get(matrix.PURE.name) if failure else None
        return Result(matrix.PURE.name, matrix.PURE.says, None, "-", failure, accepted)

    def _subject(self) -> Subject:
        settings = {
            key: os.fspath(value) if isinstance(value, os.PathLike) else value
            for key, value in self.settings.items()
        }
        wanted = declared(self.info, pure=self.pure).get(NAMESPACE)
        if wanted is not None and wanted.required:
            settings.setdefault(NAMESPACE, f"crash-kit-{self._run}")
        return Subject(self.effect, self.plugins, settings, self.text, self.observed)

    @staticmethod
    def _point(name: str) -> Point:
        point = POINTS.get(name.partition(":")[0])
        if point is None:
            raise ValueError(f"there is no point {name!r}; there are {', '.join(POINTS)}")
        return point
