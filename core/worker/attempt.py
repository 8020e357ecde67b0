"""One attempt at one claimed job: look for the receipt, else apply the effect, and say what is to follow.

    receipt there?  yes: check it, reuse it
                    no:  local   apply
                         keyed   renew the lease, apply
                         probed  renew the lease, ask the receiver (but on the first claim), apply on its no
                         once    renew the lease, record the start, apply

Nothing here moves the job: the verdict says which move the worker is to ask for.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from ..errors import FencepostError, Hold, LeaseLost, Reject, Retry, delay_s
from ..model.documents import JSON
from ..model.effect import (
    Applied,
    Effect,
    EffectRequest,
    Unknown,
)
from ..model.inputs import Input
from ..model.job import DEFAULT_EFFECT, Job
from ..model.receipts import Receipt, conflict, own_outcome
from ..model.texts import headline, message_of, plain, storable
from .lease import Lease

MAX_FRAMES: Final = 12
"""How much of a traceback an error keeps: the innermost frames, where the effect is."""
_OURS: Final = re.compile(r"(fencepost\.(core|plugins)|pluggy)(\.|$)")
"""Modules whose frames say nothing about an effect."""


class Finished(NamedTuple):
    """Publish the receipt and complete. ``reused``: this attempt applied nothing."""

    receipt: Receipt
    reused: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """Try again: after ``after_s``, or after the usual backoff where it is None."""

    error: str
    after_s: float | None = None
    unknown: bool = False
    """Whether it was applied is not known: after the last attempt the job is held, not dead."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Dead at once."""

    error: str


@dataclass(frozen=True, slots=True)
class Held:
    """Held for an operator."""

    error: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise is broken; no retry can mend that."""

    error: FencepostError


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease is gone; nothing is reported."""


Verdict: TypeAlias = Finished | Failed | Rejected | Held | Broken | Lost


class Attempt:
    """A claimed job in the hands of a worker: owned by the dispatcher until a slot takes it, and again after that."""

    __slots__ = ("begun", "effect", "input", "job", "lease", "request", "started", "stored")

    def __init__(self, job: Job, effect: Effect, lease: Lease) -> None:
        self.job = job
        self.effect = effect
        self.lease = lease
        self.started = 0.0
        """The ``time.monotonic()`` second at which a slot took it."""
        self.input: Input | None = None
        self.stored: Receipt | None = None
        self.request: EffectRequest | None = None
        self.begun = False
        """Whether the start of a ``once`` effect is recorded."""


class Leases(Protocol):
    """How ``perform`` reaches the ledger about a lease."""

    def renew(self, lease: Lease) -> None:
        """Extend the lease; raises LeaseLost where that is refused."""

    def begin(self, lease: Lease) -> None:
        """Record the start of a ``once`` effect; raises LeaseLost where that is refused."""


def perform(attempt: Attempt, leases: Leases) -> Verdict:
    """Make the attempt, and return which move the worker is to ask for."""
    job, effect, found = attempt.job, attempt.effect, attempt.input
    assert found is not None, "the input is read before the attempt is made"
    if attempt.stored is not None:
        return examine(job, found, attempt.stored, effect)
    delivery = effect.info.delivery
    asking = False
    try:
        if effect.pure:
            return Finished(receipt_of(job, found.sha256, effect, effect.outcome(found.text)), reused=False)
        assert attempt.request is not None, "an acting effect is asked with a request"
        if delivery != "local":
            leases.renew(attempt.lease)
        if delivery == "probed" and job.version > 1:
            asking = True
            answer = effect.reconcile(attempt.request)
            if isinstance(answer, Applied):
                return Finished(
                    receipt_of(job, attempt.request.input_sha256, effect, answer.outcome), reused=True
                )
            if isinstance(answer, Unknown):
                return Failed(plain(f"outcome unknown: {answer.reason}"), unknown=True)
            asking = False
        if delivery == "once":
            leases.begin(attempt.lease)
            attempt.begun = True
        outcome = effect.apply(attempt.request)
        return Finished(receipt_of(job, attempt.request.input_sha256, effect, outcome), reused=False)
    except LeaseLost:
        attempt.lease.lose()
        return Lost()
    except Retry as signal:
        after_s, fault = delay_of(signal)
        return Failed(storable(describe(signal) + fault), after_s=after_s, unknown=asking)
    except Reject as signal:
        # A receiver that could not be asked leaves it unknown whether the effect was applied.
        return Failed(describe(signal), unknown=True) if asking else Rejected(describe(signal))
    except Hold as signal:
        return Held(describe(signal))
    except BaseException as error:  # noqa: BLE001 - whatever an author's code raises is a failed attempt
        if attempt.begun:
            return Held(f"outcome unknown: {describe(error)}")
        return Failed(describe(error), unknown=asking)


def receipt_of(job: Job, digest: str, effect: Effect, outcome: Mapping[str, JSON]) -> Receipt:
    """The receipt of an outcome. The default effect's carries neither its name nor a version."""
    version = None if job.effect == DEFAULT_EFFECT else effect.info.version
    return Receipt(job.id, digest, own_outcome(outcome), job.effect, version)


def examine(job: Job, found: Input, stored: Receipt, effect: Effect) -> Verdict:
    """Check a receipt that is there: it must be this job's, and a pure effect must still say the same.

    An acting effect's receipt stands: of two executions that race, the first one wins.
    """
    version = None if job.effect == DEFAULT_EFFECT else effect.info.version
    stored_version = None if job.effect == DEFAULT_EFFECT else stored.effect_version
    expected = Receipt(job.id, found.sha256, stored.outcome, job.effect, stored_version)
    if not stored.same_as(expected):
        return Broken(conflict(stored, expected))
    if not effect.pure or stored.effect_version != version:
        return Finished(stored, reused=True)
    try:
        again = receipt_of(job, expected.input_sha256, effect, effect.outcome(found.text))
    except BaseException as error:  # noqa: BLE001 - whatever an author's code raises is a failed attempt
        return Failed(describe(error))
    return Finished(stored, reused=True) if stored.same_as(again) else Broken(conflict(stored, again))


def delay_of(signal: Retry) -> tuple[float | None, str]:
    """Return the delay that a retry asks for, and what is wrong with it.

    A class of the author's own may set ``after_s`` to anything. One that is no span gives way to the usual backoff:
    the effect was not applied all the same.
    """
    try:
        return delay_s(signal.after_s), ""
    except BaseException as error:  # noqa: BLE001 - an author's property or number may raise anything
        return None, f"\n(the usual backoff is used instead of its after_s: {message_of(error)})"


def describe(error: BaseException) -> str:
    """Return the error for people: type and message, then the effect's innermost frames; storable everywhere.

    The innermost comes first, so that a ledger that keeps less of an error loses the outermost. Never raises, whatever
    an author's exception does when it is looked at.
    """
    kind = type(error)
    if issubclass(kind, (Retry, Reject, Hold)):
        return storable(message_of(error))
    head = headline(error)
    if issubclass(kind, FencepostError):
        return storable(head)
    try:
        return storable(f"{head}{_frames(error)}".rstrip())
    except BaseException as fault:  # noqa: BLE001 - a frame's globals and its loader are an author's objects
        return storable(f"{head}\n\n(its traceback could not be read: {message_of(fault)})")


def _frames(error: BaseException) -> str:
    walked = list(traceback.walk_tb(error.__traceback__))
    if not walked:
        return ""
    # Where nothing but ours is left, the fault is ours, and our frames are what is wanted.
    theirs = [step for step in walked if not _is_ours(step[0].f_globals.get("__name__"))] or walked
    frames = traceback.StackSummary.extract(iter(theirs[: -MAX_FRAMES - 1 : -1])).format()
    return f"\n\nTraceback (innermost first):\n{''.join(frames)}"


def _is_ours(module: object) -> bool:
    return type(module) is str and _OURS.match(module) is not None
