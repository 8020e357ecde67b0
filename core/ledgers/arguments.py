"""Checks of what a verb is given, before any ledger is looked at: the same for every kind.

A float from ``time.time() * 1000`` or a fence as text must be refused where it comes in, not stored. Values such as
``ClaimRequest`` and ``JobQuery`` check their own fields when they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from ..errors import InvalidInput
from ..model.checks import MAX_INT, check_int, check_strings
from ..model.receipts import Settlement, check_settlements

Connection = TypeVar("Connection")


def check_instant(value: int | None, what: str = "now_ms") -> None:
    """Refuse what is neither an instant nor None, which means the ledger's own clock."""
    if value is not None:
        check_int(value, what)


def check_fence(value: int) -> None:
    """Refuse what is no whole number; one that never was a fence is refused by the move, as a value."""
    check_int(value, "version", low=-MAX_INT)


def check_connection(value: object, kind: type[Connection]) -> Connection:
    """Return ``value`` if it is a connection of the engine's own driver, and not a framework's wrapper around one."""
    if isinstance(value, kind):
        return value
    found = type(value)
    raise InvalidInput(
        f"connection must be a {kind.__module__}.{kind.__name__}, not {found.__module__}.{found.__name__}. From a "
        "framework give the driver's own connection: Django's is connection.connection, SQLAlchemy's is "
        "connection.connection.driver_connection"
    )


def check_ids(value: Iterable[str]) -> list[str]:
    """The ids as a list; a string would be taken for its letters."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"ids must be a list of ids, not {value!r:.40}")
    return list(value)


def check_served(queues: Sequence[str] | None, effects: Sequence[str] | None) -> None:
    """Refuse queues and effects that are no sequences of names; None means all of them."""
    if queues is not None:
        check_strings(queues, "queues")
    if effects is not None:
        check_strings(effects, "effects")


def check_batch(value: Sequence[Settlement]) -> None:
    """Refuse a batch that holds anything but settlements, or one that breaks a rule."""
    if not isinstance(value, Sequence) or not set(map(type, value)) <= {Settlement}:
        raise InvalidInput(f"settlements must be a sequence of Settlement, not {value!r:.40}")
    check_settlements(value)
