"""The rule of a receiver: what is done with a delivery, given what is known of its key. No I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Decision(Enum):
    """What becomes of a delivery; each is one line of the table in contract §9."""

    DO = "new key: do the work"
    REPLAY = "known key, done: replay the stored answer"
    IN_PROGRESS = "known key, still being done"
    OTHER_DIGEST = "known key, other digest"
    STALE_FENCE = "fence lower than one seen for that key"


@dataclass(frozen=True, slots=True)
class Known:
    """What a receiver knows of a key."""

    fence: int
    """The highest one seen."""
    digest: str | None = None
    """Of the body that the work is or was done for; None where every attempt at the work has failed."""
    answer: str | None = None
    """None until the work is done."""
    in_progress: bool = False


def decide(known: Known | None, *, fence: int, digest: str) -> Decision:
    """Decide on a well-formed delivery; the order of the checks is the contract's."""
    if known is None:
        return Decision.DO
    if fence < known.fence:
        return Decision.STALE_FENCE
    if known.digest is not None and known.digest != digest:
        return Decision.OTHER_DIGEST
    if known.in_progress:
        return Decision.IN_PROGRESS
    return Decision.DO if known.answer is None else Decision.REPLAY
