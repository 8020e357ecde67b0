"""The warnings of a tick about schedules that it has set right; the answer of a tick has no place for them."""

from __future__ import annotations

from collections.abc import Iterable


def log_notices(notices: Iterable[str]) -> None:
    """Log each as a warning."""
    import logging  # slow to load, and every command loads this module

    for notice in notices:
        logging.getLogger("fencepost.schedules").warning("%s", notice)
