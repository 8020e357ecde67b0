"""What a run of the matrix gives: a result for each row, and the sentences on those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
