"""The settings of effects: ``[effects.NAME]`` in fencepost.toml, ``--set``, the environment, the defaults.

The first that gives a setting wins, in this order: ``--set``, the file, the environment, the default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ..core.errors import InvalidInput, PluginError
from ..core.model.documents import JSON
from ..core.model.effect import EffectInfo, Setting
from ..core.model.inputs import is_name
from .redact import SHORTEST_SECRET, Secret
from .rules import NAMESPACE

OPTION: Final = "--set"

_NAMESPACE: Final = Setting(
    "Keeps the idempotency keys of two ledgers apart; the same for every worker of one."
)
_KINDS: Final[dict[type, str]] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "an array",
    dict: "a table",
}


class NotConfigured(PluginError):
    """The effect is there, but settings that it requires are not given."""


@dataclass(frozen=True, slots=True)
class Given:
    """A setting as somebody gave it, and where, for errors."""

    value: JSON
    origin: str
    is_text: bool = False
    """Whether it could only be given as text (an option, the environment), and is yet to be read as its kind."""

    def __repr__(self) -> str:  # it may be a secret: that is known only once it meets its declaration
        return f"Given(origin={self.origin!r})"


Settings = Mapping[str, "JSON | Given"]


def declared(info: EffectInfo, *, pure: bool) -> dict[str, Setting]:
    """Every setting that the effect takes: its own, and the namespace for effects that have keys."""
    settings = dict(info.settings)
    if not pure:
        required = info.delivery in ("keyed", "probed")
        own = settings.get(NAMESPACE, _NAMESPACE)
        settings[NAMESPACE] = Setting(own.help, required=required or own.required, env=own.env)
    return settings


def resolve(
    info: EffectInfo, given: Settings, environ: Mapping[str, str], *, pure: bool, kind: str = "effect"
) -> Mapping[str, Any]:
    """What ``effect_configure`` gets: every declared setting, checked, secrets hidden from ``repr``.

    Raises:
        NotConfigured: a required setting is not given.
        PluginError: a key is unknown, or a value is not of its kind; it names the key and where it was given.
    """
    settings = declared(info, pure=pure)
    values: dict[str, Any] = {}
    for key, value in given.items():
        one = value if isinstance(value, Given) else Given(value, "the settings")
        if key not in settings:
            known = ", ".join(sorted(settings)) or "none"
            raise PluginError(
                f"{one.origin}: the {kind} {info.name!r} has no setting {key!r}; its settings are: {known}"
            )
        values[key] = _checked(key, settings[key], one)
    missing = []
    for key, setting in settings.items():
        if key in values:
            continue
        if setting.env is not None and environ.get(setting.env):
            values[key] = _checked(key, setting, _from_environment(setting.env, environ))
        elif setting.required:
            missing.append(key + (f" (or environment {setting.env})" if setting.env else ""))
        else:
            values[key] = setting.default
    if missing:
        raise NotConfigured(
            f"the {kind} {info.name!r} needs the setting {', '.join(missing)}: give it in fencepost.toml under "
            f"[effects.{info.name}], or with {OPTION} {info.name}.KEY=VALUE"
        )
    return MappingProxyType(values)


def secrets_of(info: EffectInfo, values: Mapping[str, Any]) -> list[str]:
    """The values that must never be shown; of a table or a list its strings, too."""
    return [
        shown
        for key, setting in info.settings.items()
        if setting.secret and values.get(key) is not None
        for shown in (str(values[key]), *_strings(values[key]))
    ]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _strings(member)


def from_table(table: object, *, origin: str) -> dict[str, dict[str, Given]]:
    """The ``[effects]`` table of a configuration file, effect by effect.

    Raises:
        PluginError: it is not a table of tables; the message names the file and the key.
    """
    if not isinstance(table, dict):
        raise PluginError(
            f"{origin}: 'effects' must be a table, with one table [effects.NAME] for each effect"
        )
    effects: dict[str, dict[str, Given]] = {}
    for name, values in table.items():
        if not is_name(name) or not isinstance(values, dict):
            raise PluginError(f"{origin}: [effects.{name}] must be a table named like an effect")
        effects[name] = {key: Given(value, f"{origin} [effects.{name}]") for key, value in values.items()}
    return effects


def from_options(options: Iterable[str], *, effect: str | None = None) -> dict[str, dict[str, Given]]:
    """What ``--set`` gave: ``EFFECT.KEY=VALUE``, or ``KEY=VALUE`` where the command has one ``effect``.

    Raises:
        InvalidInput: an option is not of that form, or the effect is open.
    """
    effects: dict[str, dict[str, Given]] = {}
    for option in options:
        target, equals, value = option.partition("=")
        name, dot, key = target.rpartition(".")
        if not equals or not key or (dot and not is_name(name)):
            # The value may be a secret: only the part before the sign is shown.
            raise InvalidInput(f"{OPTION} {target}: write EFFECT.KEY=VALUE, such as remote.timeout_s=5")
        if not dot and effect is None:
            raise InvalidInput(f"{OPTION} {key}=…: say for which effect, as EFFECT.{key}=VALUE")
        effects.setdefault(name or effect or "", {})[key] = Given(value, OPTION, is_text=True)
    return effects


def merged(*layers: Mapping[str, Mapping[str, Given]]) -> dict[str, dict[str, Given]]:
    """Several sources as one; where two give the same setting, the later one counts."""
    effects: dict[str, dict[str, Given]] = {}
    for layer in layers:
        for name, values in layer.items():
            effects.setdefault(name, {}).update(values)
    return effects


def _checked(key: str, setting: Setting, given: Given) -> Any:
    kind = setting.kind or (str if setting.default is None else type(setting.default))
    if setting.secret and given.origin == OPTION:
        raise PluginError(
            f"{OPTION} {key}: it is a secret, and options are seen by everybody on the machine; "
            + (
                f"put it into the environment as {setting.env}"
                if setting.env
                else "put it into fencepost.toml"
            )
        )
    value: Any = given.value
    if given.is_text:
        value = _read(value, kind)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        shown = "" if setting.secret else f", not {value!r:.80}"
        raise PluginError(f"{given.origin}: {key} must be {_KINDS.get(kind, kind.__name__)}{shown}")
    if setting.secret and any(0 < len(part) < SHORTEST_SECRET for part in _strings(value)):
        raise PluginError(
            f"{given.origin}: {key} is a secret with fewer than {SHORTEST_SECRET} characters: hidden wherever it is "
            "found, it would change texts that have nothing to do with it; use a longer one"
        )
    if key == NAMESPACE and isinstance(value, str) and ("\0" in value or not value.strip()):
        raise PluginError(f"{given.origin}: namespace must be a text that is not empty, without NUL")
    return Secret(value) if setting.secret and isinstance(value, str) else value


def _from_environment(name: str, environ: Mapping[str, str]) -> Given:
    return Given(environ[name], f"environment {name}", is_text=True)


def _read(text: str, kind: type) -> Any:
    """A text from the command line or the environment as ``kind``; as it is where it cannot be that."""
    try:
        if kind in (int, float):
            return kind(text)
        if kind in (bool, list, dict):
            return json.loads(text)
    except ValueError:
        return text
    return text
