"""Which store is meant: the one that is named, else that of the configuration, under a name that no chdir moves."""

from __future__ import annotations

import os

from .config import DEFAULT_STORE, Config, load
from .ledgers.open import parse_store


def store_name(store: str | None, config: str | Config | None) -> str:
    """Return the store that is named, or else that of the configuration, as a name that no change of folder moves."""
    if store is not None:
        return absolute_store(store)
    configured = config if isinstance(config, Config) else load(config)
    if configured.store is not None:
        return absolute_store(configured.store, configured.folder)
    return absolute_store(DEFAULT_STORE)


def absolute_store(name: str, folder: str = "") -> str:
    """Return the name of the same store with an absolute path, which begins at ``folder`` if it was relative.

    An effect or another plugin may change the working folder.
    """
    kind, path = parse_store(name)
    if kind == "postgres":
        return path
    whole = os.path.abspath(os.path.join(folder, path))
    if parse_store(whole) == (kind, whole):
        return whole
    return f"sqlite:{whole}" if kind == "sqlite" else f"{whole}/"
