"""The crash matrix: where a worker is killed, stalled or given a fault, and which effects that concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Where = Literal[
    "claim",
    "asking",
    "asked",
    "before",
    "mark",
    "call",
    "answer",
    "expected",
    "line",
    "connection",
    "received",
    "returned",
    "after",
    "receipt",
    "completion",
]
"""The moments of an attempt, in their order: after the claim; before and after ``effect_reconcile``; before, in and
after the effect, inside of the middleware and outside of it; after the receipt; after the completion. In either of the
two hooks: at a mark; before and after a call to the outside; after a call whose time-out the author's code expects; at
a line; before a connection and after an answer over the network."""

How = Literal[
    "kill", "stall", "wait", "time-out", "reset", "refused", "error", "retry", "reject", "hold", "lease-lost"
]
"""What happens there: the process is killed; it stalls until it is let go on; it waits until its other job has passed;
or the fault of that name is raised."""


class Stop(NamedTuple):
    """One moment of an attempt, and what happens to the worker there."""

    where: Where
    how: How
    at: str | int | None = None
    """Which of several such moments: the name of a mark, the number of a step."""


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the matrix."""

    name: str
    says: str
    """The row as part of a sentence."""
    where: Where | None = None
    how: How = "kill"
    concerns: Literal["all", "acting", "repeated", "receiver", "probed", "pure", "wrapped"] = "all"
    """``repeated``: acting effects but ``once``; ``receiver``: ``keyed`` and ``probed``; ``wrapped``: effects
    that middleware wraps."""


UNDISTURBED: Final = Point("undisturbed", "undisturbed")
AFTER_CLAIM: Final = Point("after-claim", "killed after the claim", "claim")
BEFORE_EFFECT: Final = Point("before-effect", "killed before the effect", "before")
IN_EFFECT: Final = Point("in-effect", "killed in the effect", "mark", concerns="acting")
AFTER_EFFECT: Final = Point("after-effect", "killed after the effect and before the receipt", "after")
AFTER_RECEIPT: Final = Point("after-receipt", "killed after the receipt and before the completion", "receipt")
AFTER_COMPLETION: Final = Point("after-completion", "killed after the completion", "completion")
STALE_BEFORE: Final = Point("stale-before", "a stale worker wakes before its effect", "claim", "stall")
STALE_IN: Final = Point(
    "stale-in-effect",
    "a stale worker wakes in its effect beside its successor",
    "mark",
    "stall",
    concerns="acting",
)
STALE_AFTER: Final = Point(
    "stale-after", "a stale worker finishes late beside its successor", "after", "stall"
)
LATE: Final = Point(
    "lease-ended",
    "the lease ends in the effect, and nobody has taken the job over yet",
    "before",
    "stall",
    "acting",
)
TWO_AT_ONCE: Final = Point("two-at-once", "two executions at once", "before", "stall", concerns="acting")
TIMED_OUT: Final = Point(
    "timed-out", "the receiver applied it and then timed out", "returned", "time-out", concerns="acting"
)
FAILS_INSIDE: Final = Point(
    "fails-inside", "a call of the effect fails", "mark", "time-out", concerns="acting"
)
REDELIVERY: Final = Point("redelivery", "the same job delivered again")
REDRIVEN: Final = Point(
    "redriven", "killed after the effect in its last attempt, and redriven", "after", concerns="repeated"
)
CANNOT_SAY: Final = Point(
    "reconcile-unknown", "the receiver cannot say for a while", "after", concerns="probed"
)
TWO_JOBS: Final = Point("two-jobs", "two jobs through one worker", "line", "wait")
OTHER_NAMESPACE: Final = Point(
    "other-namespace", "the same id and text in a ledger with another namespace", concerns="receiver"
)
PASSED_ON: Final = Point(
    "passed-on", "what the effect raises, around middleware", "before", concerns="wrapped"
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
        STALE_IN,
        STALE_AFTER,
        LATE,
        TWO_AT_ONCE,
        TIMED_OUT,
        FAILS_INSIDE,
        REDELIVERY,
        REDRIVEN,
        CANNOT_SAY,
        TWO_JOBS,
        OTHER_NAMESPACE,
        PASSED_ON,
        PURE,
    )
}
"""The matrix by name, in the order of an attempt. ``in-effect`` and ``stale-in-effect`` are one row for each mark,
``NAME:MARK``."""
