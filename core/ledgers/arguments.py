"""Arguments of the ledger's verbs, checked by name before anything is looked at: the same on every ledger.

A float from ``time.time() * 1000`` or a fence as text must be refused where it comes in, not stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, TypeVar, cast

from ..errors import InvalidInput
from ..model.checks import MAX_INT, check_int
from ..model.job import STATES
from ..model.receipts import Settlement, check_settlements

Verb = TypeVar("Verb", bound=Callable[..., Any])

_OPTIONAL: Final = frozenset(
    {"now_ms", "run_at_ms", "error", "actor", "reason", "queues", "effects", "states"}
)
"""May be None: the ledger's own clock, at once, unknown, all of them."""


def _figure(low: int, high: int = MAX_INT) -> Callable[[object, str], object]:
    return lambda value, name: check_int(value, name, low=low, high=high)


def _fence(value: object, name: str) -> None:
    # Any whole number may be asked about: one that never was a fence is refused as a value, by the verb.
    if type(value) is not int:
        raise InvalidInput(f"{name} must be a whole number, not {value!r:.40}")


def _text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}")


def _storable(value: object, name: str) -> None:
    _text(value, name)
    try:
        str(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} has a lone surrogate at character {error.start}") from error
    if "\0" in str(value):
        raise InvalidInput(f"{name} holds a NUL character")


def _names(value: object, name: str) -> Sequence[str]:
    # A generator would be used up by looking at it, and then name nothing.
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(one, str) for one in value)
    ):
        example = f": write ({value!r:.40},) for one" if isinstance(value, str) else ""
        raise InvalidInput(f"{name} must be a sequence of strings, not {value!r:.40}{example}")
    return value


def _ids(value: object, name: str) -> None:
    if isinstance(value, str) or not isinstance(value, Iterable):  # a string would be taken for its letters
        raise InvalidInput(f"{name} must be a list of ids, not {value!r:.40}")


def _states(value: object, name: str) -> None:
    if unknown := [one for one in _names(value, name) if one not in STATES]:
        raise InvalidInput(f"the state {unknown[0]!r:.40} is unknown; there are {', '.join(STATES)}")


def _settlements(value: object, name: str) -> None:
    if not isinstance(value, Sequence) or not set(map(type, value)) <= {Settlement}:
        raise InvalidInput(f"{name} must be a sequence of Settlement, not {value!r:.40}")
    check_settlements(value)


_CHECKS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "version": _fence,
    "now_ms": _figure(0),
    "run_at_ms": _figure(0),
    "extend_ms": _figure(0),
    "since_ms": _figure(0),
    "lease_ms": _figure(1),
    "max_attempts": _figure(1),
    "limit": _figure(1),
    "error": _text,
    "exhausted_error": _text,
    "expired_error": _text,
    "lost_error": _text,
    "claimant": _storable,
    "actor": _storable,
    "reason": _storable,
    "ids": _ids,
    "queues": _names,
    "effects": _names,
    "states": _states,
    "settlements": _settlements,
}


def checked(verb: Verb) -> Verb:
    """The verb, which refuses arguments that break a rule.

    Raises:
        InvalidInput: names the argument and the rule; the ledger was not looked at.
    """
    code = cast(FunctionType, verb).__code__
    positional = code.co_varnames[1 : code.co_argcount]

    @functools.wraps(verb)
    def call(self: object, *arguments: Any, **named: Any) -> Any:
        for name, value in (*zip(positional, arguments, strict=False), *named.items()):
            check = _CHECKS.get(name)
            if check is not None and not (value is None and name in _OPTIONAL):
                check(value, name)
        return verb(self, *arguments, **named)

    return cast(Verb, call)
