"""What a worker knows of an effect: its declaration, what it is asked, and how it may answer.

Plugins see these names through ``fencepost.plugins``; this module knows no plugin system.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

from .documents import JSON
from .inputs import text_sha256
from .keys import idempotency_key

Delivery: TypeAlias = Literal["local", "keyed", "probed", "once"]
"""How an effect may be repeated; docs/reference/contract/effects.md §8 has the table."""

DELIVERIES: tuple[Delivery, ...] = ("local", "keyed", "probed", "once")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that an effect takes, from ``[effects.NAME]`` of fencepost.toml or ``--set``."""

    help: str
    required: bool = False
    default: JSON = None
    secret: bool = False
    """Never shown in logs, receipts or errors."""
    env: str | None = None
    """An environment variable that gives it where the file does not."""
    kind: type | None = None
    """str, int, float, bool, list or dict; None means that of the default, or str where there is none."""


@dataclass(frozen=True, slots=True)
class EffectInfo:
    """An effect's declaration."""

    name: str
    summary: str
    version: str = "1"
    """Goes into receipts; change it when the same input would give another outcome."""
    delivery: Delivery = "local"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    receiver_key: str | None = None
    """For ``keyed``: where the receiver keeps the idempotency key (a header, a column, a parameter)."""


class EffectRequest:
    """One attempt, as an acting effect sees it.

    ``fence`` grows with each claim, so that a receiver can refuse a stale sender; ``deadline`` is the
    ``time.monotonic()`` second at which the lease ends. What few effects look at is made when it is looked at: a
    request costs as much as the rest of a short attempt.
    """

    def __init__(
        self,
        *,
        id: str,
        text: str,
        attempt: int,
        fence: int,
        effect: str,
        namespace: str,
        deadline: float,
        extend: Callable[[EffectRequest], None],
        logger: logging.Logger,
        first_claimed_at_ms: int | None = None,
        now_ms: int | None = None,
    ) -> None:
        self.id = id
        self.text = text
        """What the effect is to work on: the stored text, or what middleware has made of it."""
        self.stored_text = text
        """The text of the job, of which the digest and the idempotency key are made."""
        self.attempt = attempt
        self.fence = fence
        self.deadline = deadline
        self.first_claimed_at_ms = first_claimed_at_ms
        """When the job was first claimed, by the ledger's clock; for receivers that forget keys."""
        self.now_ms = now_ms
        """The ledger's clock when this attempt was claimed."""
        self.on_mark: Callable[[str], None] | None = None
        """Told of each mark; the crash kit of ``fencepost.plugins.testing`` listens here."""
        self._effect = effect
        self._namespace = namespace
        self._extend = extend
        self._logger = logger
        self._gone = False

    @cached_property
    def input_sha256(self) -> str:
        """SHA-256 of the text's UTF-8 bytes, in lower-case hex, as in the receipt."""
        return text_sha256(self.stored_text)

    @cached_property
    def idempotency_key(self) -> str:
        """The same for every attempt of the job, whoever makes it; different for any other job."""
        return idempotency_key(self._namespace, self._effect, self.id, self.input_sha256)

    @cached_property
    def log(self) -> logging.Logger | logging.LoggerAdapter[Any]:
        """A logger whose records carry the job and the fence."""
        return logging.LoggerAdapter(self._logger, {"job": self.id, "fence": self.fence})

    @property
    def lost(self) -> threading.Event:
        """Set when the lease is gone: stop, whatever comes next is not reported as success."""
        # setdefault is one step, so that two threads of one effect never wait for two events. A lock might be held
        # by another thread when an effect forks, and would never be free in the child.
        event: threading.Event = self.__dict__.setdefault("_lost", threading.Event())
        if self._gone:
            event.set()
        return event

    def lose(self) -> None:
        """Set ``lost``; for the worker."""
        # In this order: whichever comes second, this or the first look, sets the event.
        self._gone = True
        event: threading.Event | None = self.__dict__.get("_lost")
        if event is not None:
            event.set()

    def json(self) -> Any:
        """The text, read as JSON."""
        return json.loads(self.text)

    def remaining_s(self) -> float:
        """Seconds until the lease ends, by the monotonic clock; 0 when it has."""
        return max(0.0, self.deadline - time.monotonic())

    def mark(self, name: str) -> None:
        """Name this point of the effect, for the crash kit to kill the process here. Does nothing in use."""
        if self.on_mark is not None:
            self.on_mark(name)

    def heartbeat(self) -> None:
        """Renew the lease now.

        Raises:
            LeaseLost: the job belongs to another claim, or to nobody.
        """
        self._extend(self)


@dataclass(frozen=True, slots=True)
class Applied:
    """A reconcile's yes: the receiver knows the key, and this is the outcome that it stored."""

    outcome: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class NotApplied:
    """A reconcile's no: the receiver has certainly not applied this key, and will not by itself."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A reconcile's "I cannot say": asked again later; held after the last attempt, never applied."""

    reason: str = "the receiver could not say whether the effect was applied"


Reconciled: TypeAlias = Applied | NotApplied | Unknown


class Effect(Protocol):
    """One chosen effect, ready to be called."""

    @property
    def info(self) -> EffectInfo:
        """The declaration."""

    @property
    def pure(self) -> bool:
        """Whether ``outcome`` is what it implements; otherwise it is ``apply``."""

    @property
    def namespace(self) -> str:
        """What keeps the idempotency keys of two ledgers apart; empty where the effect needs none."""

    def validate(self, text: str) -> None:
        """Refuse a text at enqueue by raising InvalidInput."""

    def outcome(self, text: str) -> Mapping[str, JSON]:
        """The outcome of a pure effect: no side effect, the same answer always."""

    def apply(self, request: EffectRequest) -> Mapping[str, JSON]:
        """Do the work of an acting effect, and say what was done."""

    def reconcile(self, request: EffectRequest) -> Reconciled:
        """Ask the receiver what became of ``request.idempotency_key``."""

    def close(self) -> None:
        """Let go of what the effect holds open."""
