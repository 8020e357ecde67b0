"""Effects for tests of the worker, made from a function, and what they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.core.model.effect import (
    Delivery,
    EffectInfo,
    EffectRequest,
    NotApplied,
    Reconciled,
)


class Acting:
    """An acting effect that does what ``apply`` does, and counts its calls."""

    pure = False
    namespace = "tests"

    def __init__(
        self,
        apply: Callable[[EffectRequest], Any] = lambda request: {"done": request.id},
        *,
        name: str = "act",
        delivery: Delivery = "local",
        reconcile: Callable[[EffectRequest], Reconciled] = lambda request: NotApplied(),
        version: str = "1",
    ) -> None:
        self.info = EffectInfo(name, "for tests", version=version, delivery=delivery, receiver_key="key")
        self._apply = apply
        self._reconcile = reconcile
        self.applied: list[EffectRequest] = []
        self.asked: list[EffectRequest] = []

    def validate(self, text: str) -> None:
        pass

    def outcome(self, text: str) -> Mapping[str, Any]:
        raise AssertionError("an acting effect has no outcome of its own")

    def apply(self, request: EffectRequest) -> Mapping[str, Any]:
        self.applied.append(request)
        outcome: Mapping[str, Any] = self._apply(request)
        return outcome

    def reconcile(self, request: EffectRequest) -> Reconciled:
        self.asked.append(request)
        return self._reconcile(request)

    def close(self) -> None:
        pass


class Pure(Acting):
    """A pure effect that computes what ``compute`` does."""

    pure = True

    def __init__(
        self,
        compute: Callable[[str], Any] = lambda text: {"length": len(text)},
        *,
        name: str = "measure",
        version: str = "1",
    ) -> None:
        super().__init__(name=name, version=version)
        self._compute = compute
        self.computed: list[str] = []

    def outcome(self, text: str) -> Mapping[str, Any]:
        self.computed.append(text)
        outcome: Mapping[str, Any] = self._compute(text)
        return outcome


def raising(error: BaseException) -> Callable[[Any], Any]:
    """A function that raises."""

    def fail(_: Any) -> Any:
        raise error

    return fail
