"""``fencepost.toml``: the store, the defaults of queues, the settings of effects.

    store = "jobs.db"

    [queues.mail]                  # stamps for what is enqueued there
    visibility_timeout_s = 60
    max_attempts = 5

    [schedules.nightly]            # stored by: fencepost schedule apply
    every = "30 2 * * *"           # or a span, such as 15m
    zone = "Europe/Berlin"
    text = "sales"

    [effects.remote]               # read by the plugins, see docs/how-to/configure-effects.md
    url = "https://…"

Found by ``--config`` or ``FENCEPOST_CONFIG``, else in the working folder. A relative store is relative to the
file. Unknown keys are errors.
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
from .model.records import Schedule

FILE_NAME: Final = "fencepost.toml"
CONFIG_ENV: Final = "FENCEPOST_CONFIG"
DEFAULT_STORE: Final = "jobs-data"

_SECTIONS: Final = frozenset({"store", "queues", "schedules", "effects"})
_STAMPS: Final = frozenset(stamp.name for stamp in fields(Stamps))
_OF_SCHEDULES: Final = frozenset(
    {"every", "zone", "text", "queue", "effect", "priority", "expires_s", "missed", "overlap"}
)


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; ``path`` is None where there is none."""

    path: Path | None = None
    """The file, as the person named it."""
    folder: str = ""
    """The absolute path of the file's folder, which a relative ``store`` begins at."""
    store: str | None = None
    """The store that the file names."""
    queues: Mapping[str, Stamps] = field(default_factory=dict)
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    """What ``fencepost schedule apply`` stores, by name; without the stamps of their queues."""
    effects: Mapping[str, Any] = field(default_factory=dict)

    def stamps_of(self, queue: str) -> Stamps:
        """The stamps that jobs of the queue get where they bring none."""
        return self.queues.get(queue, NO_STAMPS)


def find(given: str | None) -> Path | None:
    """Return the file to read: the one given, else that of the environment, else the working folder's if it is there.

    A folder or a dangling link of that name counts as there, so that reading it says what is wrong.
    """
    named = given or os.environ.get(CONFIG_ENV)
    if named:
        return Path(named)
    return Path(FILE_NAME) if os.path.lexists(FILE_NAME) else None


def load(given: str | None = None) -> Config:
    """Read the configuration.

    Raises:
        InvalidInput: the file cannot be read, or holds a key that is unknown or of the wrong type.
    """
    path = find(given)
    if path is None:
        return Config()
    import tomllib  # only where there is a file

    try:
        table = tomllib.loads(_read(path).decode("utf-8-sig"))  # Windows' editors begin UTF-8 with a mark
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path}: not TOML: {error}") from error
    if unknown := sorted(table.keys() - _SECTIONS):
        known = ", ".join(sorted(_SECTIONS))
        raise InvalidInput(f"{path}: the key {unknown[0]!r} is unknown; there are {known}")
    store = table.get("store")
    if store is not None and (not isinstance(store, str) or not store):
        raise InvalidInput(f"{path}: store must be a string")
    return Config(
        path,
        os.path.dirname(os.path.abspath(path)),
        store,
        _queues(table.get("queues", {}), path),
        _schedules(table.get("schedules", {}), path),
        table.get("effects", {}),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except IsADirectoryError as error:
        raise InvalidInput(
            f"{path}: is a folder, not a configuration file; rename it, or name another file"
        ) from error
    except FileNotFoundError as error:
        if path.is_symlink():
            raise InvalidInput(f"{path}: is a link to {os.readlink(path)}, which does not exist") from error
        raise InvalidInput(f"{path}: there is no such file") from error
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from error


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


def _schedules(table: object, path: Path) -> dict[str, Schedule]:
    if not isinstance(table, dict):
        raise InvalidInput(f"{path}: [schedules.NAME] must be tables")
    return {name: _schedule(name, said, f"{path}: [schedules.{name}]") for name, said in table.items()}


def _schedule(name: str, said: object, where: str) -> Schedule:
    from .model.schedules import check_schedule  # only where there are schedules
    from .model.timetable import spec_of

    try:
        if not isinstance(said, dict):
            raise InvalidInput("must be a table")
        if unknown := sorted(said.keys() - _OF_SCHEDULES - _STAMPS):
            known = ", ".join(sorted(_OF_SCHEDULES | _STAMPS))
            raise InvalidInput(f"the key {unknown[0]!r} is unknown; there are {known}")
        if missing := [key for key in ("every", "text") if not isinstance(said.get(key), str)]:
            raise InvalidInput(f"{missing[0]} must be given, and be a string")
        stamps = Stamps(**{key: value for key, value in said.items() if key in _STAMPS})
        rest = {key: value for key, value in said.items() if key in _OF_SCHEDULES}
        return check_schedule(Schedule(name, **rest | {"every": spec_of(said["every"])}, stamps=stamps))
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error
