"""Every error that Fencepost raises, as one tree.

    FencepostError
    ├── InvalidInput          a value breaks a rule of docs/reference/contract/limits.md §3
    │   └── LimitExceeded     … because it is too large, too long or too many
    ├── IdentityConflict      an id is bound to another text or another effect
    ├── LeaseLost             the claim no longer holds the job: its fence or its lease has passed
    ├── ReceiptConflict       the receipt that is stored is not the one that was expected
    ├── LedgerError           the ledger, not the request, is at fault
    │   ├── LedgerCorrupt     what is stored cannot be read, or misses a part
    │   ├── LedgerBusy        a lock or a connection was not had in time: try again
    │   ├── LedgerFailed      the engine failed; its own error is the cause
    │   │   ├── LedgerReplaced  another one stands in the place of the one that was opened
    │   │   └── LedgerSealed  moved: copied to another ledger, or the copy to here has not ended
    │   ├── LedgerVersion     made by a newer program, or not yet migrated
    │   └── Unsupported       this kind of ledger does not have that verb
    ├── PluginError           a plugin breaks a rule, or its settings do
    │   └── EffectNotFound    no loaded plugin has that effect
    └── Signal                not an error: what an effect raises to say how to go on
        ├── Retry             try again, after this delay
        ├── Reject            never try again: the job is dead
        └── Hold              nobody knows whether it was applied: an operator decides

A refused move of a job is no error: the verbs answer ``False`` (see ``ledger.py``).
A message says what is wrong, where, and what to do next.
"""

from __future__ import annotations

from math import inf
from typing import Final


class FencepostError(Exception):
    """The base of every error that Fencepost raises."""


class InvalidInput(FencepostError):
    """A value breaks a rule; the message names the record, the field and the rule."""


class LimitExceeded(InvalidInput):
    """A value is well formed, but larger than the limit."""


class IdentityConflict(FencepostError):
    """An id permanently binds its first text and its effect; another one was given."""


class LeaseLost(FencepostError):
    """The lease of the claim is no longer valid; whatever the attempt did, it must not report success."""


class ReceiptConflict(FencepostError):
    """A stored receipt differs from the one that was expected; the stored one stays as it is."""


class LedgerError(FencepostError):
    """The ledger, not the request, is at fault."""


class LedgerCorrupt(LedgerError):
    """What is stored cannot be read or misses a part; nothing was changed."""


class LedgerBusy(LedgerError):
    """A lock or a connection was not had in time; nothing was changed, try again."""


class LedgerFailed(LedgerError):
    """The engine under the ledger failed; ``__cause__`` is its own error."""


class LedgerReplaced(LedgerFailed):
    """Another ledger is in the place of the opened one and knows nothing of its claims: open it anew."""


class LedgerSealed(LedgerFailed):
    """The ledger was copied to another one, or a copy to it has not ended: it takes no work; the message says which."""


class LedgerVersion(LedgerError):
    """The ledger's schema is not the one this program works with."""


class Unsupported(LedgerError):
    """This kind of ledger does not have that verb; the message names one that does."""


class PluginError(FencepostError):
    """A plugin, or what it was configured with, breaks a rule of the interface."""


class EffectNotFound(PluginError):
    """No loaded plugin has an effect of that name."""


MAX_RETRY_S: Final = 10 * 365 * 86_400
"""Whoever asks for more has computed it wrongly."""


class Signal(FencepostError):
    """What an effect raises to say how its job goes on; never an error of the program."""


def delay_s(value: object) -> float | None:
    """Return the delay of a retry in seconds; None is the usual backoff.

    Raises:
        TypeError: it is no number: a ``Retry-After`` header must be read first, it may also be a date.
        ValueError: not finite, or more than ten years.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"Retry: after_s must be a number of seconds, not {value!r:.40}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = inf
    if not -MAX_RETRY_S <= seconds <= MAX_RETRY_S:  # which NaN is not either
        raise ValueError(f"Retry: after_s is {value!r:.40}, at most {MAX_RETRY_S:,} can be waited for")
    return seconds


class Retry(Signal):
    """Not applied; try again ``after_s`` seconds from now, or after the usual backoff if None.

    Raises:
        TypeError: ``after_s`` is no number: a ``Retry-After`` header must be read first, it may also be a date.
        ValueError: not finite, or more than ten years.
    """

    after_s: float | None = None
    """The usual backoff, also where a class of the author's own does not call ``super().__init__``."""

    def __init__(self, reason: str = "the effect asked for a retry", *, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = delay_s(after_s)


class Reject(Signal):
    """Not applied, and no further attempt can change that: the job is dead at once."""


class Hold(Signal):
    """It is unknown whether the effect was applied, or a person must look: the job is held."""
