"""Why a job is in its state, what happens to it next, and when: pure, in plain words.

Every answer follows from the moves of ``job.py``; a person who knows nothing of the project should find in it why
a given job has not run, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .durations import relative, words
from .job import (
    COMPLETED,
    DEAD,
    HELD,
    QUEUED,
    RUNNING,
    Job,
    expired,
    lapsed,
    limit_of,
)
from .policy import DEFAULT_MAX_ATTEMPTS

MAX_REASON: Final = 300
CONTRADICTED: Final = ("ReceiptConflict", "LedgerCorrupt")
"""How the error of a job begins that is held because of what the ledger stores."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is to be known beside the job itself."""

    now_ms: int
    has_input: bool = True
    has_receipt: bool = False
    paused: bool = False
    """The job's queue is paused."""
    pause_said: str | None = None
    """Who paused it, when and why, in words."""
    sealed_for: str | None = None
    """The ledger was copied to this place."""
    copying_from: str | None = None
    """The copy of this place to here has not ended."""
    running_beside: int = 0
    """How many other jobs of the same queue and effect are running under live leases."""
    installed: bool = True
    """A plugin here has the job's effect."""
    lacks_settings: str | None = None
    """Which settings that effect requires and has not here, and how to give them."""
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    """The limit of a worker that is told no other."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a person can do, and the command that does it where there is one (without its ``--store``)."""

    what: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """``why`` the job is in its state, what comes ``next``, at what instant (None: none is set)."""

    why: str
    next: str
    next_at_ms: int | None = None
    advice: tuple[Advice, ...] = ()


def explain(job: Job, around: Surroundings) -> Explanation:
    """The whole answer."""
    if not around.has_input:
        return Explanation(
            "its input is missing from the ledger, so nobody can work on it",
            "every worker that claims it stops with an error, or holds it",
            advice=(
                Advice("restore the input from a copy"),
                Advice("see what else is missing", "fencepost doctor"),
            ),
        )
    if around.sealed_for is not None and job.state != COMPLETED:
        return Explanation(
            f"it is {job.state}, and this ledger was sealed when it was copied to {around.sealed_for}",
            "nothing moves here any more: look at the job there",
            advice=(Advice("look there", f"fencepost jobs show {job.id} --store {around.sealed_for}"),),
        )
    if around.copying_from is not None and job.state != COMPLETED:
        return Explanation(
            f"it is {job.state}, and the copy of {around.copying_from} to this ledger has not ended",
            "nothing moves here until it has",
            advice=(
                Advice(
                    f"run fencepost copy --from {around.copying_from} to here again, which goes on with it"
                ),
            ),
        )
    told = {QUEUED: _queued, RUNNING: _running, COMPLETED: _completed, DEAD: _dead, HELD: _held}
    return told[job.state](job, around)


def brief(job: Job, now_ms: int, *, paused: bool = False) -> str:
    """The same in a few words, for one line of a table."""
    if expired(job, now_ms):
        return f"expired {relative(job.expires_at_ms or 0, now_ms)}"
    if job.state == QUEUED:
        text = _wait(job, now_ms, paused=paused)
        return f"{text}; {first_line(job.last_error)}" if job.last_error and job.attempts else text
    if job.state == RUNNING:
        return f"lease {'ended' if lapsed(job, now_ms) else 'ends'} {relative(job.lease_until_ms, now_ms)}"
    if job.state == COMPLETED:
        return f"done{_when(job.completed_at_ms, now_ms)}"
    when = "" if job.died_at_ms is None else f"{relative(job.died_at_ms, now_ms)}: "
    return when + first_line(job.last_error or job.state)


def first_line(text: str) -> str:
    """What an error says before its details, cut to a length that a sentence can carry."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"


# -- one function a state ----------------------------------------------------------------------------------


def _queued(job: Job, around: Surroundings) -> Explanation:
    now_ms = around.now_ms
    if expired(job, now_ms):
        return _expired(job, now_ms)
    if job.attempts >= limit_of(job, around.max_attempts):
        return _used_up(job, around)
    then = f"it runs ({_tries(job, around, job.attempts + 1)})"
    paused = f"its queue {job.queue!r} is paused" + (f" ({around.pause_said})" if around.pause_said else "")
    if job.run_at_ms is not None and job.run_at_ms > now_ms:
        why = f"it is not due for another {words(job.run_at_ms - now_ms)}"
        if job.attempts:
            why = f"attempt {job.attempts} failed{_failure(job)}; {why}"
        if around.paused:
            why += f", and {paused}"
        return _claimable(job, around, why, f"{relative(job.run_at_ms, now_ms)} or soon after, {then}")
    since = _ready_for(job, now_ms)
    if around.paused:
        return _claimable(job, around, f"it is ready{since}, but {paused}", then)
    again = " again" if job.attempts else ""
    crowd = (
        f"{_others(around)} running, so it waits for its turn: larger priority first, then whichever was ready first"
        if around.running_beside
        else "no such job is running, so perhaps there is no such worker"
    )
    missing = "" if around.installed else ", which is not installed here"
    if around.lacks_settings is not None:
        missing = ", which lacks settings here"
    return _claimable(
        job,
        around,
        f"it is ready{since}, and no worker has claimed it{again}{_failure(job)}; it needs a worker that serves "
        f"the queue {job.queue!r} and has the effect {job.effect!r}{missing}; {crowd}",
        f"as soon as such a worker claims it, {then}",
    )


def _used_up(job: Job, around: Surroundings) -> Explanation:
    if job.stamps.max_attempts is not None:
        then = "the next claim that serves it buries it"
    else:
        then = "the next claim by a worker with that limit buries it; one with a higher --max-attempts tries again"
    return Explanation(
        f"its attempts are used up ({_tries(job, around, job.attempts)}){_failure(job)}",
        then,
        advice=(Advice("once it is dead it can be given a new life", f"fencepost dead redrive {job.id}"),),
    )


def _claimable(job: Job, around: Surroundings, why: str, then: str) -> Explanation:
    """What is the same for every queued job that may still be claimed."""
    advice = []
    if around.paused:
        then = f"nothing until the queue is resumed; then {then}"
        advice.append(
            Advice("let workers claim from the queue again", f"fencepost queues resume {job.queue}")
        )
    if not around.installed:
        what = f"the effect {job.effect!r} is not installed here; a worker needs the plugin that has it"
        advice.append(Advice(what, "fencepost plugins --all"))
    if around.lacks_settings is not None:
        advice.append(Advice(f"give its workers the settings that are missing here: {around.lacks_settings}"))
    if not around.paused and not around.running_beside:
        advice.append(_start_worker(job))
    if around.has_receipt:
        then += "; its receipt is there already, so it is completed and its effect is not repeated"
    if job.expires_at_ms is not None:
        then += f"; it expires {relative(job.expires_at_ms, around.now_ms)}"
    return Explanation(why, then, job.run_at_ms, tuple(advice))


def _running(job: Job, around: Surroundings) -> Explanation:
    now_ms = around.now_ms
    who = f" by {job.claimant}" if job.claimant else ""
    claimed = f"it was claimed{who}{_when(job.claimed_at_ms, now_ms)} ({_tries(job, around, job.attempts)})"
    if expired(job, now_ms):
        late = _expired(job, now_ms)
        return Explanation(f"{claimed}, but {late.why}", late.next, late.next_at_ms, late.advice)
    ends = relative(job.lease_until_ms, now_ms)
    if not lapsed(job, now_ms):
        return Explanation(
            f"{claimed}, and its lease has not ended: it is being worked on",
            f"lease ends {ends} unless the worker renews it, then {_after_lease(job, around)}",
            job.lease_until_ms,
        )
    return Explanation(
        f"{claimed}, and its lease ended {ends}: the worker died, hangs, or lost sight of the ledger",
        f"with the next claim that serves the queue {job.queue!r} and the effect {job.effect!r}, "
        f"{_after_lease(job, around)}",
        job.lease_until_ms,
        () if around.running_beside else (_start_worker(job),),
    )


def _after_lease(job: Job, around: Surroundings) -> str:
    if job.started_at_ms is not None and around.has_receipt:
        return "the next claim completes it by the receipt that is there"
    if job.started_at_ms is not None:
        return "it is held, because nobody can tell whether its effect was applied"
    if job.attempts >= limit_of(job, around.max_attempts):
        return "it is buried, because that was its last attempt"
    if around.paused:
        return f"it is queued, and waits until the queue {job.queue!r} is resumed"
    reuse = ", and completes it by the receipt that is there" if around.has_receipt else ""
    return f"any worker may take it ({_tries(job, around, job.attempts + 1)}){reuse}"


def _completed(job: Job, around: Surroundings) -> Explanation:
    done = f"it was completed{_when(job.completed_at_ms, around.now_ms)}"
    if around.has_receipt:
        return Explanation(done, "nothing: the receipt stands")
    return Explanation(
        f"{done}, but its receipt is missing",
        "nothing: a completed job stays as it is",
        advice=(
            Advice("restore the receipt from a copy"),
            Advice("see what else is missing", "fencepost doctor"),
        ),
    )


def _dead(job: Job, around: Surroundings) -> Explanation:
    now_ms = around.now_ms
    retention_ms = job.stamps.dead_letter_retention_ms
    at_ms = None if retention_ms is None or job.died_at_ms is None else job.died_at_ms + retention_ms
    if at_ms is None:
        then = "nothing: it stays until somebody redrives or purges it"
    elif at_ms <= now_ms:
        then = f"the next sweep purges it: its retention ended {relative(at_ms, now_ms)}"
    else:
        then = f"a sweep purges it {relative(at_ms, now_ms)}, when its retention ends"
    life = "give it a new life"
    if around.has_receipt:
        life += " (its receipt is there: it is completed, and its effect is not repeated)"
    elif job.started_at_ms is not None:
        life += " (it will be held: it had started, and nobody knows whether its effect was applied)"
    return Explanation(
        f"it died{_when(job.died_at_ms, now_ms)} after {_count(job.attempts)}{_failure(job)}",
        then,
        at_ms,
        (
            Advice(life, f"fencepost dead redrive {job.id}"),
            Advice("forget it; its id stays bound to its text", f"fencepost dead purge {job.id}"),
        ),
    )


def _held(job: Job, around: Surroundings) -> Explanation:
    resolve = f"fencepost jobs resolve {job.id}"
    if (job.last_error or "").startswith(CONTRADICTED):
        return Explanation(
            f"it is held, because what is stored of it contradicts itself or cannot be read{_failure(job)}",
            "nothing, until somebody mends what is stored and resolves it",
            advice=(
                Advice("compare its receipt with its input; restore from a copy, or remove, what is wrong"),
                Advice("see what else is wrong", "fencepost doctor --verify"),
                Advice("then try it again; never adopt a receipt that is false", f"{resolve} --retry"),
                Advice("give it up", f"{resolve} --fail"),
            ),
        )
    if around.has_receipt:
        applied = Advice("it was applied, as the receipt that is there says", f"{resolve} --adopt-receipt")
    else:
        applied = Advice("it was applied; say what the receiver stored", f"{resolve} --applied '{{…}}'")
    return Explanation(
        f"it is held until a person decides, after {_count(job.attempts)}{_failure(job)}",
        "nothing, until somebody resolves it: find out at the receiver whether its effect was applied",
        advice=(
            applied,
            Advice("it was not applied, try it again", f"{resolve} --retry"),
            Advice("give it up", f"{resolve} --fail"),
        ),
    )


# -- words that several states use -------------------------------------------------------------------------


def _expired(job: Job, now_ms: int) -> Explanation:
    return Explanation(
        f"it expired {relative(job.expires_at_ms or 0, now_ms)}, before it was completed",
        "the next claim that serves it, or the next sweep, buries it",
        job.expires_at_ms,
        (Advice("bury what has expired now", "fencepost sweep"),),
    )


def _wait(job: Job, now_ms: int, *, paused: bool) -> str:
    if job.run_at_ms is not None and job.run_at_ms > now_ms:
        return f"due {relative(job.run_at_ms, now_ms)}" + (", queue paused" if paused else "")
    return "queue paused" if paused else f"ready{_ready_for(job, now_ms)}"


def _ready_for(job: Job, now_ms: int) -> str:
    since_ms = job.enqueued_at_ms if job.run_at_ms is None else job.run_at_ms
    return "" if since_ms is None or since_ms >= now_ms else f" for {words(now_ms - since_ms)}"


def _others(around: Surroundings) -> str:
    return (
        "one other such job is"
        if around.running_beside == 1
        else f"{around.running_beside:,} other such jobs are"
    )


def _start_worker(job: Job) -> Advice:
    return Advice(
        "start a worker, unless one is there",
        f"fencepost worker --follow --queue {job.queue} --effect {job.effect}",
    )


def _tries(job: Job, around: Surroundings, attempt: int) -> str:
    own = job.stamps.max_attempts
    return (
        f"attempt {attempt} of {around.max_attempts} by default"
        if own is None
        else f"attempt {attempt} of {own}"
    )


def _when(at_ms: int | None, now_ms: int) -> str:
    return "" if at_ms is None else f" {relative(at_ms, now_ms)}"


def _failure(job: Job) -> str:
    return f": {first_line(job.last_error)}" if job.last_error else ""


def _count(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts or 'no'} attempts"
