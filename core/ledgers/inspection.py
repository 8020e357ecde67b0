"""What the doctor needs of a ledger: to look at it as it is, without changing, making or repairing anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from ..model.inputs import Input
from ..model.job import Job
from ..model.receipts import Receipt
from ..model.records import Schedule
from .closing import Closing


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should look at, and what to do about it."""

    check: str
    """Which check found it: a short name that stays the same from version to version."""
    problem: str
    remedy: str
    ids: tuple[str, ...] = ()
    """Some of the jobs (or files, or queues) that it is about."""
    count: int = 1
    """How many there are in all."""


class Entry(NamedTuple):
    """One id, and which parts of it are there."""

    id: str
    job: Job | None
    purged: bool
    has_input: bool
    has_receipt: bool


class Content(NamedTuple):
    """What is stored under one id; ``fault`` says why a part cannot be read."""

    id: str
    input: Input | None
    receipt: Receipt | None
    fault: str | None = None


class Inspection(Protocol):
    """One look at a ledger."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def location(self) -> str:
        """The absolute path, or the URL without its password."""

    def now_ms(self) -> int:
        """The ledger's own clock."""

    def findings(self) -> Iterator[Finding]:
        """What only this kind of ledger can be asked: files and modes, the schema, the engine's own check.

        Raises:
            LedgerError: it is so broken that nothing else can be read.
        """

    def entries(self) -> Iterator[Entry]:
        """Every id that anything is kept of; as of one instant where the engine can do that."""

    def contents(self, ids: Sequence[str]) -> Iterable[Content]:
        """Inputs and receipts of these ids."""

    def paused(self) -> list[str]:
        """The queues that are paused."""

    def schedules(self) -> list[Schedule]:
        """The schedules as they are stored, those that cannot fire included."""

    def closing(self) -> Closing:
        """What closes the ledger, if anything does."""
