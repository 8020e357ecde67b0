"""Effects with their settings: what the configuration, the environment and the options give to installed plugins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Final, Self

from ..plugins import settings as plugin_settings
from ..plugins.manager import Plugins
from ..plugins.settings import NotConfigured
from .config import Config, load
from .errors import EffectNotFound, PluginError
from .model.documents import JSON
from .model.effect import Effect

_log: Final = logging.getLogger("fencepost.effects")


class Effects:
    """The plugins of one command or program, and the effects chosen from them with the settings that the user gave.

    While it is open, no log line shows a secret. At its end the effects are closed.
    """

    def __init__(
        self,
        config: Config,
        *,
        warn: Callable[[str], None],
        settings: Sequence[str] | None = None,
        modules: Sequence[str] | None = None,
        blocked: Sequence[str] | None = None,
        wanted: Sequence[str] | None = None,
        given: Mapping[str, Mapping[str, JSON]] | None = None,
        tolerant: bool = False,
    ) -> None:
        """Load the plugins. ``warn`` is told what a person should know.

        ``settings`` are options of the command line, ``given`` the values of a program, effect by effect.

        ``tolerant``: settings for effects that are not installed here are passed over in silence.
        """
        self._warn = warn
        only = wanted[0] if wanted and len(wanted) == 1 else None
        origin = str(config.path) if config.path else ""
        in_file = plugin_settings.from_table(config.effects, origin=origin)
        in_options = plugin_settings.from_options(settings or (), effect=only)
        by_program = plugin_settings.from_table(dict(given or {}), origin="load_effects")
        self._settings = plugin_settings.merged(in_file, by_program, in_options)
        self.plugins: Plugins = Plugins.load(
            blocked=tuple(blocked or ()), modules=tuple(modules or ()), settings=self._settings
        )
        for name in (*in_options, *by_program):
            if not self.plugins.is_middleware(name):
                self.plugins.find(name)
        for name in in_file:
            if not tolerant and not self.plugins.has(
                name
            ):  # the file may be shared with machines that have it
                self._warn(f"{origin} [effects.{name}]: no effect of that name is installed here")
        self._while_open = ExitStack()

    def __enter__(self) -> Self:
        self._while_open.enter_context(self.plugins.redactor.cleaning_logs())
        self._while_open.callback(self.plugins.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._while_open.close()

    def choose(self, name: str) -> Effect:
        """Return the effect of that name with its settings, or raise EffectNotFound or PluginError."""
        return self.plugins.choose(name, self._settings.get(name))

    def text_check(self, name: str) -> Callable[[str], None]:
        """The check of a text that the effect makes before a job is stored; warns where the effect has none here."""
        try:
            return self.choose(name).validate
        except EffectNotFound:
            self._warn(f"no effect {name!r} is installed here; the jobs wait for a worker that has it")
        except PluginError as error:
            self._warn(f"the texts are not checked by the effect {name!r}: {error}")
        return lambda text: None

    def lacks_settings(self, name: str) -> str | None:
        """Say which settings the effect requires and has not, and how to give them; None where it has all."""
        return self.plugins.lacks_settings(name, self._settings.get(name))

    def namespace_of(self, name: str) -> str | None:
        """Return the namespace of the effect's idempotency keys; None where it has no keys, or is not usable here."""
        return self.plugins.namespace_of(name, self._settings.get(name))

    def choose_all(self) -> dict[str, Effect]:
        """Return every effect that is installed and has all the settings that it requires.

        One that is set up wrongly is an error if the user has given it settings; else it is left out with a warning.
        """
        chosen = {}
        for name in self.plugins.effect_names():
            try:
                chosen[name] = self.choose(name)
            except PluginError as error:
                if name in self._settings:
                    raise
                if not isinstance(error, NotConfigured) or not self.plugins.ships(name):
                    self._warn(f"the effect {name!r} is left out: {error}")
        return chosen


@contextmanager
def load_effects(
    *names: str,
    settings: Mapping[str, Mapping[str, JSON]] | None = None,
    config: str | None = None,
    plugins: Sequence[str] = (),
) -> Iterator[dict[str, Effect]]:
    """Load effects for a ``Worker``, by name, and close them at the end of the block.

    Args:
        names: the effects; unless given, every effect that is installed and has the settings that it requires.
        settings: of each effect, by its name; they win over those of the configuration file.
        config: the configuration file; else that of ``FENCEPOST_CONFIG``, else ``fencepost.toml`` in the working
            folder, if it is there.
        plugins: modules or files to load as plugins, beside those that are installed.

    Raises:
        EffectNotFound: no plugin has an effect of that name.
        PluginError: a plugin cannot be loaded, or an effect lacks settings or has wrong ones.
    """
    with Effects(load(config), warn=_log.warning, modules=plugins, given=settings) as effects:
        yield {name: effects.choose(name) for name in names} if names else effects.choose_all()
