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
from ..settings import Given, Settings, declared
from .plays import Plays
from .points import POINTS, Point
from .processes import WorkerHost
from .results import Result, sentences
from .subject import Subject

DEFAULT_TEXT: Final = "hello from the crash kit"


class CrashKitError(AssertionError):
    """The effect does not keep its promise; a sentence for each row of the matrix that shows it."""


@dataclass
class EffectCase:
    """An effect, and how to see from outside what it did.

    Args:
        effect: its name.
        folder: where ledgers may be made; the fixture gives ``tmp_path``.
        observed: counts how often the outside world saw the effect; each job adds one. Acting effects need it.
        text: what the jobs carry.
        other_text: what the second job carries where there are two; the same text unless given.
        settings: the effect's; a path may be given as such. A required namespace that is not given is made up.
        middleware: the settings of middleware, by its name.
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
    other_text: str | None = None
    middleware: Mapping[str, Settings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plugins = Plugins.load(modules=self.plugins)
        found = plugins.find(self.effect)
        assert found.info is not None
        assert found.hooks is not None
        self.info: EffectInfo = found.info
        self.pure: bool = "effect_outcome" in found.hooks.implemented
        if not self.pure and self.observed is None:
            raise TypeError(
                f"the effect {self.effect!r} changes something outside: give observed=, which counts how often the "
                "outside world saw it"
            )
        self.wrapped: bool = bool(plugins.wraps or found.hooks.wrapped)
        for name in self.accept:
            self._point(name)
        # Jobs of one run never meet those of another one in a world that remembers.
        self._run = secrets.token_hex(4)
        self._jobs = 0

    def points(self) -> list[Point]:
        """The rows that concern this effect, in the order of an attempt."""
        kinds = {"all", "pure"} if self.pure else {"all", "acting", self.info.delivery}
        if not self.pure and self.info.delivery != "once":
            kinds.add("repeated")
        if self.info.delivery in ("keyed", "probed"):
            kinds.add("receiver")
        if self.wrapped:
            kinds.add("wrapped")
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
        with WorkerHost() as host:
            plays = Plays(self, host)
            return [result for point in rows for result in plays.rows_of(point)]

    # -- for the plays --

    def new_id(self) -> str:
        """The id of a job that no other one of any run has."""
        self._jobs += 1
        return f"case-{self._run}-{self._jobs}"

    def store_of(self, id: str) -> str:
        """Where the ledger of a job lies."""
        return str(self.folder / (id + (".db" if self.ledger == "sqlite" else "")))

    def subject(self) -> Subject:
        """The effect as a process is told of it."""
        settings = {
            key: os.fspath(value) if isinstance(value, os.PathLike) else value
            for key, value in self.settings.items()
        }
        wanted = declared(self.info, pure=self.pure).get(NAMESPACE)
        if wanted is not None and wanted.required:
            settings.setdefault(NAMESPACE, f"crash-kit-{self._run}")
        other_text = self.text if self.other_text is None else self.other_text
        return Subject(
            self.effect, self.plugins, settings, self.text, other_text, self.observed, self.middleware
        )

    @staticmethod
    def _point(name: str) -> Point:
        point = POINTS.get(name.partition(":")[0])
        if point is None:
            raise ValueError(f"there is no point {name!r}; there are {', '.join(POINTS)}")
        return point
