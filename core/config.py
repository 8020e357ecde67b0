"""``fencepost.toml``: the store, the defaults of queues, the settings of effects.

    store = "jobs.db"

    [queues.mail]                  # stamps for what is enqueued there
    visibility_timeout_s = 60
    max_attempts = 5

    [effects.remote]               # read by the plugins, see docs/how-to/configure-effects.md
    url = "https://…"

Found by ``--config`` or ``FENCEPOST_CONFIG``, else in the working folder. Unknown keys are errors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from .errors import InvalidInput
from .model.inputs import check_name, check_stamps
from .model.job import NO_STAMPS, Stamps

FILE_NAME: Final = "fencepost.toml"
CONFIG_ENV: Final = "FENCEPOST_CONFIG"
DEFAULT_STORE: Final = "jobs-data"

_SECTIONS: Final = frozenset({"store", "queues", "effects"})
_STAMPS: Final = frozenset(stamp.name for stamp in fields(Stamps))


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; ``path`` is None where there is none."""

    path: Path | None = None
    store: str = DEFAULT_STORE
    queues: Mapping[str, Stamps] = field(default_factory=dict)
    effects: Mapping[str, Any] = field(default_factory=dict)

    def stamps_of(self, queue: str) -> Stamps:
        """The stamps that jobs of the queue get where they bring none."""
        return self.queues.get(queue, NO_STAMPS)


def find(given: str | None) -> Path | None:
    """The file to read: the one given, else that of the environment, else the working folder's if it is there."""
    named = given or os.environ.get(CONFIG_ENV)
    if named:
        return Path(named)
    here = Path(FILE_NAME)
    return here if here.is_file() else None


def load(given: str | None = None) -> Config:
    """Read the configuration.

    Raises:
        InvalidInput: the file cannot be read, or holds a key that is unknown or of the wrong type.
    """
    path = find(given)
    if path is None:
        return Config()
    import tomllib

    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path}: not TOML: {error}") from error
    if unknown := sorted(table.keys() - _SECTIONS):
        known = ", ".join(sorted(_SECTIONS))
        raise InvalidInput(f"{path}: the key {unknown[0]!r} is unknown; there are {known}")
    store = table.get("store", DEFAULT_STORE)
    if not isinstance(store, str) or not store:
        raise InvalidInput(f"{path}: store must be a string")
    return Config(path, store, _queues(table.get("queues", {}), path), table.get("effects", {}))


def _queues(table: object, path: Path) -> dict[str, Stamps]:
    if not isinstance(table, dict):
        raise InvalidInput(f"{path}: [queues.NAME] must be tables")
    found = {}
    for name, stamps in table.items():
        where = f"{path}: [queues.{name}]"
        try:
            check_name(name, "queue")
            if not isinstance(stamps, dict):
                raise InvalidInput("must be a table")
            if unknown := sorted(stamps.keys() - _STAMPS):
                raise InvalidInput(
                    f"the key {unknown[0]!r} is unknown; there are {', '.join(sorted(_STAMPS))}"
                )
            found[name] = check_stamps(Stamps(**stamps))
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from error
    return found
