"""The crash matrix: where a worker is killed, stalled or cheated, and which effects that concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Where = Literal["claim", "before", "mark", "after", "receipt", "completion"]
"""The moments of an attempt, in their order: after the claim; before, in and after the effect; after the receipt;
after the completion."""

How = Literal["kill", "stall", "raise"]


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the matrix."""

    name: str
    says: str
    """The row as part of a sentence."""
    where: Where | None = None
    how: How = "kill"
    concerns: Literal["all", "acting", "probed", "pure"] = "all"


UNDISTURBED: Final = Point("undisturbed", "undisturbed")
AFTER_CLAIM: Final = Point("after-claim", "killed after the claim", "claim")
BEFORE_EFFECT: Final = Point("before-effect", "killed before the effect", "before")
IN_EFFECT: Final = Point("in-effect", "killed in the effect", "mark", concerns="acting")
AFTER_EFFECT: Final = Point("after-effect", "killed after the effect and before the receipt", "after")
AFTER_RECEIPT: Final = Point("after-receipt", "killed after the receipt and before the completion", "receipt")
AFTER_COMPLETION: Final = Point("after-completion", "killed after the completion", "completion")
STALE_BEFORE: Final = Point("stale-before", "a stale worker wakes before its effect", "claim", "stall")
STALE_AFTER: Final = Point(
    "stale-after", "a stale worker finishes late beside its successor", "after", "stall"
)
TWO_AT_ONCE: Final = Point("two-at-once", "two executions at once", "before", "stall", concerns="acting")
TIMED_OUT: Final = Point(
    "timed-out", "the receiver applied it and then timed out", "after", "raise", concerns="acting"
)
REDELIVERY: Final = Point("redelivery", "the same job delivered again")
CANNOT_SAY: Final = Point(
    "reconcile-unknown", "the receiver cannot say for a while", "after", concerns="probed"
)
PURE: Final = Point("pure", "asked again and again", concerns="pure")

POINTS: Final[dict[str, Point]] = {
    point.name: point
    for point in (
        UNDISTURBED,
        AFTER_CLAIM,
        BEFORE_EFFECT,
        IN_EFFECT,
        AFTER_EFFECT,
        AFTER_RECEIPT,
        AFTER_COMPLETION,
        STALE_BEFORE,
        STALE_AFTER,
        TWO_AT_ONCE,
        TIMED_OUT,
        REDELIVERY,
        CANNOT_SAY,
        PURE,
    )
}
"""The matrix by name, in the order of an attempt. ``in-effect`` is one row for each mark: ``in-effect:NAME``."""
