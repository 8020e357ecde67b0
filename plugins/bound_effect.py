"""One effect that is in use: its hooks bound once, wrapped by the middleware, and kept apart from all other effects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from pluggy import PluginManager

from ..core.errors import FencepostError, InvalidInput, PluginError
from ..core.model.documents import JSON
from ..core.model.effect import (
    Applied,
    EffectInfo,
    EffectRequest,
    NotApplied,
    Reconciled,
    Unknown,
)
from ..core.model.texts import headline, message_of
from . import hookspecs
from .redact import Redactor
from .rules import NAMESPACE, Hooks, is_fault
from .settings import Settings, resolve, secrets_of

_log = logging.getLogger("fencepost.plugins")


def bind(plugin: object, *, around: Sequence[object] = ()) -> PluginManager:
    """A plugin manager with this plugin and the middleware ``around`` it, and nobody else.

    So no effect can ever answer for another, and none pays for the others' being there.

    Raises:
        PluginError: a hook takes an argument that there is not.
    """
    manager = PluginManager("fencepost")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, "effect")
        for place, middleware in enumerate(around):
            manager.register(middleware, f"middleware {place}")
    except Exception as error:  # pluggy's own error, or whatever a plugin's attributes raise when looked at
        raise PluginError(" ".join(str(error).split())) from error
    return manager


class Around(Protocol):
    """Middleware, as an effect knows it."""

    wrappers: object
    changes_text: bool

    def text(self, text: str, info: EffectInfo) -> str:
        """Return what the effect is to see."""


class BoundEffect:
    """What a worker calls: see ``fencepost.core.effect.Effect``."""

    def __init__(
        self,
        plugin: object,
        info: EffectInfo,
        hooks: Hooks,
        *,
        given: Settings,
        environ: Mapping[str, str],
        middleware: Sequence[Around] = (),
        secrets: Redactor,
    ) -> None:
        """``secrets`` is told those of this effect before any of its code runs that knows them."""
        self.info = info
        self.pure = "effect_outcome" in hooks.implemented
        settings = resolve(info, given, environ, pure=self.pure)
        self.namespace: str = settings.get(NAMESPACE) or ""
        own_secrets = secrets_of(info, settings)
        self.redactor = Redactor(own_secrets)
        secrets.learn(own_secrets)
        self._has_secrets = bool(self.redactor)
        self._hooks = bind(plugin, around=[one.wrappers for one in middleware]).hook
        self._changing = [one for one in reversed(middleware) if one.changes_text]
        self._open = True
        try:
            self._hooks.effect_configure(settings=settings, info=info)
        except BaseException as error:  # the user is told whose it is
            if not is_fault(error):
                raise
            cause = self.redactor.error(error)
            detail = message_of(cause) if isinstance(cause, FencepostError) else headline(cause)
            raise PluginError(f"the effect {info.name!r} cannot be set up: {detail}") from cause

    def __repr__(self) -> str:
        return f"BoundEffect({self.info.name!r})"

    def validate(self, text: str) -> None:
        """Refuse a text at enqueue.

        Raises:
            InvalidInput: the effect says that it can never apply this text.
            PluginError: the effect's validation is itself at fault.
        """
        try:
            self._hooks.effect_validate(text=self._seen(text), info=self.info)
        except BaseException as error:  # a refusal is told apart from a fault
            if not is_fault(error):
                raise
            cause = self.redactor.error(error)
            if isinstance(cause, FencepostError):
                raise cause from None
            if isinstance(cause, ValueError):
                raise InvalidInput(
                    f"the effect {self.info.name!r} refuses the text: {message_of(cause)}"
                ) from cause
            raise PluginError(
                f"effect_validate of the effect {self.info.name!r} failed: {headline(cause)}"
            ) from cause

    def outcome(self, text: str) -> Mapping[str, JSON]:
        """The outcome of a pure effect; what the effect raises is passed on."""
        return cast(Mapping[str, JSON], self._guarded(self._hooks.effect_outcome, text=text))

    def apply(self, request: EffectRequest) -> Mapping[str, JSON]:
        """Do the work; what the effect raises is passed on, without secrets."""
        return cast(Mapping[str, JSON], self._guarded(self._hooks.effect_apply, request=request))

    def reconcile(self, request: EffectRequest) -> Reconciled:
        """Ask the receiver.

        Raises:
            PluginError: the effect answered with something else than Applied, NotApplied or Unknown.
        """
        answer = self._guarded(self._hooks.effect_reconcile, request=request)
        if isinstance(answer, Applied):
            self._check_shows_no_secret(answer.outcome)
            return answer
        if isinstance(answer, Unknown):
            return Unknown(self.redactor.value(answer.reason)) if self._has_secrets else answer
        if isinstance(answer, NotApplied):
            return answer
        raise PluginError(
            f"effect_reconcile of the effect {self.info.name!r} returned {type(answer).__name__}; it must "
            "return Applied(outcome), NotApplied() or Unknown(reason)"
        )

    def close(self) -> None:
        """Let the effect let go of what it holds open, once."""
        if not self._open:
            return
        self._open = False
        try:
            self._hooks.effect_close()
        except BaseException as error:  # the work is done, nothing may undo it now
            if not is_fault(error):
                raise
            cause = self.redactor.error(error)
            _log.warning("effect_close of the effect %r failed", self.info.name, exc_info=cause)

    def _seen(self, text: str) -> str:
        """What the effect sees of a stored text."""
        for one in self._changing:
            text = one.text(text, self.info)
        return text

    def _guarded(self, call: Callable[..., Any], **arguments: Any) -> Any:
        if self._changing:
            return self._checked(self._changed(call), arguments)
        return self._checked(call, arguments)

    def _changed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, with the text that middleware makes of the stored one."""

        def changed(
            *, text: str | None = None, request: EffectRequest | None = None, info: EffectInfo
        ) -> Any:
            if request is None:
                assert text is not None, "a pure effect is given a text"
                return call(text=self._seen(text), info=info)
            request.text = self._seen(request.stored_text)
            return call(request=request, info=info)

        return changed

    def _checked(self, call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if not self._has_secrets:
            return call(**arguments, info=self.info)
        request = arguments.get("request")
        if isinstance(request, EffectRequest):
            request.log = self.redactor.log(request.log)
        try:
            answer = call(**arguments, info=self.info)
        except BaseException as error:
            cause = self.redactor.error(error)
            if cause is error:
                raise
            raise cause from None
        self._check_shows_no_secret(answer)
        return answer

    def _check_shows_no_secret(self, outcome: Any) -> None:
        """Refuse an outcome that holds a secret: a receipt is for good, and must say what the effect said."""
        where = self.redactor.where(outcome) if self._has_secrets else None
        if where is not None:
            raise PluginError(
                f"the outcome of the effect {self.info.name!r} holds a secret setting, in {where!r}; receipts are "
                "shown to everybody: return something else"
            )
