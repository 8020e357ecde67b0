"""What a row of the matrix says about the effect's promise: a sentence with the point and the remedy, or nothing."""

from __future__ import annotations

from ...core.model.documents import canonical
from ...core.model.effect import EffectInfo
from ...core.model.job import COMPLETED, DEAD, HELD
from .points import (
    AFTER_CLAIM,
    AFTER_EFFECT,
    BEFORE_EFFECT,
    REDELIVERY,
    STALE_AFTER,
    STALE_BEFORE,
    TIMED_OUT,
    TWO_AT_ONCE,
    UNDISTURBED,
    Point,
)
from .scenarios import Played

NEVER_UNKNOWN = (UNDISTURBED, AFTER_CLAIM, STALE_BEFORE, REDELIVERY)
"""Where even a ``once`` effect must end completed: its attempt had not started, or had ended."""


def judge(info: EffectInfo, point: Point, played: Played, *, pure: bool) -> str | None:
    """The sentence on one row; None where the promise was kept."""
    if pure:
        return _pure(played)
    seen = played.seen
    assert seen is not None, "an acting effect is never judged without observed()"
    if point is UNDISTURBED and seen != 1 and played.state == COMPLETED:
        return (
            f"observed() counted {_times(seen)} for one job that nothing disturbed; let it count how often the "
            "outside world saw the effect, so that each job adds exactly one"
        )
    if seen > 1:
        return f"the outside world saw it {_times(seen)}. {_too_often(info, point, played)}"
    if seen < 0:
        return f"observed() went down by {-seen}; let it count all that the outside world ever saw"
    if played.state == COMPLETED:
        return _completed(info, point, played)
    return _not_completed(info, point, played)


def _pure(played: Played) -> str | None:
    conflict = played.conflict()
    if conflict is not None:
        return (
            f"the effect did not give the same outcome again ({conflict}). A pure effect may depend on its text "
            "alone; if it looks at anything else, implement effect_apply"
        )
    if played.seen:
        return (
            "the outside world saw something of a pure effect: implement effect_apply and choose a delivery"
        )
    if played.state != COMPLETED:
        return f"the job ended {played.state}, not completed: {played.error}"
    return None


def _too_often(info: EffectInfo, point: Point, played: Played) -> str:
    if info.delivery == "local":
        return (
            "Delivery 'local' promises that repeating is harmless: do the same thing again instead of one thing "
            "more (write the file that is named by request.idempotency_key, insert or ignore), or declare 'keyed', "
            "'probed' or 'once'"
        )
    if info.delivery == "keyed":
        return (
            f"Send request.idempotency_key as it is in {info.receiver_key} (nothing that contains the attempt, the "
            "fence or the time), and let the receiver keep the key in the same transaction as the work"
        )
    if info.delivery == "probed":
        if point in (TWO_AT_ONCE, STALE_AFTER, STALE_BEFORE):
            return (
                "NotApplied() promises that no earlier request can still arrive, and one did: let the receiver "
                "refuse a second application of one key (a unique column), or answer Unknown()"
            )
        if "NotApplied" in played.answers():
            return (
                "effect_reconcile said NotApplied although it was applied: ask for request.idempotency_key, which "
                "is the same in every attempt, and answer Unknown() where the receiver is not certain"
            )
        return "effect_reconcile did not prevent it: ask for request.idempotency_key"
    return "One attempt alone did it more than once: that is for the effect to mend"


def _completed(info: EffectInfo, point: Point, played: Played) -> str | None:
    if played.seen == 0:
        if "Applied" in played.answers():
            return (
                "the job is completed, and the outside world never saw it. effect_reconcile said Applied although "
                "nothing was: answer Applied only for this request.idempotency_key, found at the receiver"
            )
        return (
            "the job is completed, and the outside world never saw it. Return only when the work is durable "
            "(committed, or flushed and fsynced)"
        )
    if info.delivery in ("keyed", "probed") and point in (AFTER_EFFECT, TIMED_OUT):
        first = next(iter(played.outcomes()), played.outcome)
        if canonical(first) != canonical(played.outcome):
            return (
                f"the first answer was {canonical(first):.200}, and the receipt says "
                f"{canonical(played.outcome):.200}: return what the receiver stored for the key, so that a replay "
                "says the same"
            )
    return None


def _not_completed(info: EffectInfo, point: Point, played: Played) -> str | None:
    if info.delivery == "once" and played.state == HELD and point not in NEVER_UNKNOWN:
        return None
    error = (played.error or "no error was recorded").splitlines()[0]
    if info.delivery == "probed" and point is BEFORE_EFFECT and set(played.answers()) == {"Unknown"}:
        return (
            "nothing was applied, and effect_reconcile could only say Unknown, so that every such job waits for an "
            "operator. If the receiver cannot say no, the effect is 'once'"
        )
    if played.state == DEAD and point is TWO_AT_ONCE:
        return f"the job is dead after it was applied ({error}): raise Retry where the receiver is busy with the key"
    return (
        f"the job ended {played.state}, not completed ({error}); a second attempt must be able to finish it"
    )


def _times(count: int) -> str:
    return {0: "nothing", 1: "once", 2: "twice instead of once"}.get(count, f"{count} times instead of once")
