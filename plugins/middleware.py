"""Middleware in use: a plugin that wraps the effects of others, with its settings and its changes of texts."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..core.errors import FencepostError, PluginError
from ..core.model.effect import EffectInfo
from ..core.model.texts import headline, message_of
from .bound_effect import bind
from .redact import Redactor
from .rules import Hooks, Wrappers, is_fault
from .settings import Settings, resolve, secrets_of

_log = logging.getLogger("fencepost.plugins")


class Middleware:
    """Middleware that is configured and in use."""

    def __init__(
        self,
        plugin: object,
        hooks: Hooks,
        info: EffectInfo | None,
        *,
        given: Settings,
        environ: Mapping[str, str],
        secrets: Redactor,
    ) -> None:
        """Configure it, if it declares settings; ``secrets`` is told its own before any of its code runs.

        Raises:
            NotConfigured: it requires settings that are not given.
            PluginError: its settings are wrong, or it fails while it is set up.
        """
        self.wrappers: object = Wrappers(plugin)
        """What is bound around each effect."""
        self.changes_text = "effect_text" in hooks.implemented
        self._hooks = bind(plugin).hook
        self._secrets = secrets
        self._info = info
        if info is None:
            return
        settings = resolve(info, given, environ, pure=True, kind="middleware")
        secrets.learn(secrets_of(info, settings))
        try:
            self._hooks.effect_configure(settings=settings, info=info)
        except BaseException as error:  # the user is told whose it is
            if not is_fault(error):
                raise
            cause = secrets.error(error)
            detail = message_of(cause) if isinstance(cause, FencepostError) else headline(cause)
            raise PluginError(f"the middleware {info.name!r} cannot be set up: {detail}") from cause

    def text(self, text: str, info: EffectInfo) -> str:
        """What it makes of a text for the effect ``info``.

        Raises:
            PluginError: it gave something else than a text. What it raises itself is passed on.
        """
        changed = self._hooks.effect_text(text=text, info=info)
        if not isinstance(changed, str):
            raise PluginError(f"effect_text returned {type(changed).__name__}; it must return a text")
        return changed

    def close(self) -> None:
        """Let it let go of what it holds open."""
        try:
            self._hooks.effect_close()
        except BaseException as error:  # the work is done, nothing may undo it now
            if not is_fault(error):
                raise
            name = self._info.name if self._info else "?"
            _log.warning(
                "effect_close of the middleware %r failed", name, exc_info=self._secrets.error(error)
            )
