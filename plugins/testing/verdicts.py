"""What a row of the matrix says about the effect's promise: a sentence with the point and the remedy, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...core.model.documents import canonical
from ...core.model.effect import EffectInfo
from ...core.model.job import COMPLETED, DEAD, HELD, QUEUED, Job
from .child import FAULT
from .points import (
    AFTER_CLAIM,
    AFTER_EFFECT,
    BEFORE_EFFECT,
    FAILS_INSIDE,
    OTHER_NAMESPACE,
    REDELIVERY,
    STALE_AFTER,
    STALE_BEFORE,
    STALE_IN,
    TIMED_OUT,
    TWO_AT_ONCE,
    TWO_JOBS,
    UNDISTURBED,
    How,
    Point,
)
from .scenarios import Played
from .steps import reaches_files

NEVER_UNKNOWN: Final = (UNDISTURBED, AFTER_CLAIM, STALE_BEFORE, REDELIVERY, TWO_JOBS)
"""Where even a ``once`` effect must end completed: its attempt had not started, or had ended."""
FAULTY: Final = (TIMED_OUT, FAILS_INSIDE)
"""Where the effect meets an error, instead of being killed or overtaken."""


def judge(info: EffectInfo, point: Point, played: Played, *, pure: bool, step: str = "") -> str | None:
    """The sentence on one row; None where the promise was kept. ``step`` says where in the effect it was disturbed."""
    if pure:
        return _pure(point, played)
    seen = played.seen
    assert seen is not None, "an acting effect is never judged without observed()"
    if point is UNDISTURBED and seen != 1 and played.state == COMPLETED:
        return (
            f"observed() counted {_times(seen)} for one job that nothing disturbed; let it count how often the "
            "outside world saw the effect, so that each job adds exactly one"
        )
    if seen < 0:
        return f"observed() went down by {-seen}; let it count all that the outside world ever saw"
    if played.went_on():
        return (
            "request.heartbeat() raised LeaseLost, and the effect went on and returned an outcome: let LeaseLost "
            "pass, another attempt has the job"
        )
    if seen > played.jobs:
        return f"the outside world saw it {_times(seen, played.jobs)}. {_too_often(info, point, played)}"
    if played.seen_at_return == 0 and seen > 0:
        return (
            "the effect had returned, and the outside world never saw it before another attempt did it again. "
            + _DURABLE
        )
    if played.state == COMPLETED:
        return _completed(info, point, played, step)
    return _not_completed(info, point, played, step)


def judge_outcomes(
    outcomes: Sequence[Mapping[str, Any] | None], alone: Sequence[Mapping[str, Any] | None], *, pure: bool
) -> str | None:
    """The sentence on the receipts of two jobs that one worker did, beside what the effect says of each alone."""
    for outcome, expected in zip(outcomes, alone, strict=True):
        if expected is not None and canonical(outcome) != canonical(expected):
            return (
                f"the receipt of a job that shared its worker with another one says {canonical(outcome):.200}, and a "
                f"new worker says {canonical(expected):.200} of the same job. "
                + ("Compute from the text alone" if pure else _LEAKS)
            )
    return None


def judge_fault(info: EffectInfo, fault: How, job: Job, played: Played) -> str | None:
    """The sentence on a fault that was raised in the effect's place, and went through the middleware around it."""
    raised = {
        "error": "an error",
        "retry": "Retry",
        "reject": "Reject",
        "hold": "Hold",
        "lease-lost": "LeaseLost",
    }
    hidden = any("hidden" in report for report in played.reports[:3]) or job.state == COMPLETED
    if hidden:
        return (
            f"the effect raised {raised[fault]}, and a wrapper made an outcome of it: the job counts as done, and "
            "nothing was. Let what the effect raises pass through the wrapper"
        )
    if fault == "lease-lost":
        return None
    wanted = {"error": (QUEUED, HELD), "retry": (QUEUED, HELD), "reject": (DEAD, HELD), "hold": (HELD,)}[
        str(fault)
    ]
    if info.delivery == "once" and fault == "error":
        wanted = (HELD,)
    if job.state not in wanted:
        return (
            f"the effect raised {raised[fault]}, and a wrapper turned it into something else: the job was {job.state} "
            f"after it, not {wanted[0]}. Let what the effect raises pass through the wrapper"
        )
    if FAULT not in (job.last_error or ""):
        return (
            f"the effect raised {raised[fault]}, and a wrapper hid what it said (the job's error is "
            f"{(job.last_error or '').splitlines()[:1]!r}). Let it pass, or quote it in what is raised instead"
        )
    return None


_DURABLE: Final = (
    "Return only when the work is durable (committed, or flushed and fsynced), and do nothing in a thread that goes on "
    "afterwards"
)
_LEAKS: Final = (
    "Something of one job is kept in memory and used for another one: keep what belongs to a job in local "
    "variables"
)


def _pure(point: Point, played: Played) -> str | None:
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
    if point is TWO_JOBS:
        return _LEAKS
    if point in FAULTY and info.delivery == "once":
        return (
            "A call failed after it had its effect, and the job was tried again: nobody knows how far such a call "
            "came. Raise Retry only where it is certain that nothing was done, and let everything else pass, or Hold"
        )
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
        if point in (TWO_AT_ONCE, STALE_AFTER, STALE_BEFORE, STALE_IN):
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


def _completed(info: EffectInfo, point: Point, played: Played, step: str) -> str | None:
    if point is TWO_JOBS and played.seen != played.jobs:
        return f"the outside world saw {_times(played.seen or 0)} of two jobs that are completed. {_LEAKS}"
    if point is OTHER_NAMESPACE and played.seen != played.jobs:
        return (
            "the second of two ledgers found its job done, though only the other one had done it: send "
            "request.idempotency_key as it is, which is made of the namespace, the effect, the id and the text"
        )
    if played.seen == 0:
        if "Applied" in played.answers():
            return (
                "the job is completed, and the outside world never saw it. effect_reconcile said Applied although "
                "nothing was: answer Applied only for this request.idempotency_key, found at the receiver"
            )
        if point is FAILS_INSIDE:
            return (
                "the job is completed, and the outside world never saw it. The error was taken for a success: "
                "return an outcome only where the receiver has confirmed it, and let every error pass"
            )
        return f"the job is completed, and the outside world never saw it. {_DURABLE}"
    if info.delivery in ("keyed", "probed") and point in (AFTER_EFFECT, *FAULTY):
        first = next(iter(played.outcomes()), played.outcome)
        if canonical(first) != canonical(played.outcome):
            return (
                f"the first answer was {canonical(first):.200}, and the receipt says "
                f"{canonical(played.outcome):.200}: return what the receiver stored for the key, so that a replay "
                "says the same"
            )
    return None


def _not_completed(info: EffectInfo, point: Point, played: Played, step: str) -> str | None:
    if info.delivery == "once" and played.state == HELD and point not in NEVER_UNKNOWN:
        return None
    error = (played.error or "no error was recorded").splitlines()[0]
    if point in FAULTY and played.state == DEAD:
        if played.seen == 0 and reaches_files(step):
            return None  # a file that cannot be read may well be a reason to give up
        return (
            f"the job is dead{' although it was applied' if played.seen else ''} ({error}): a call that fails says "
            "nothing about the next attempt, nor about what it has done. Raise Reject only for what the receiver has "
            f"refused for good, and {'Hold' if info.delivery == 'once' else 'Retry'} here"
        )
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


def _times(count: int, wanted: int = 1) -> str:
    if wanted == 2:
        return f"{count} times instead of twice"
    return {0: "nothing", 1: "once", 2: "twice instead of once"}.get(count, f"{count} times instead of once")
