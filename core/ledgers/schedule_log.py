"""What a ledger says of schedules that it has set right; a tick's answer has no place for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable

_log = logging.getLogger("fencepost.schedules")


def log_notices(notices: Iterable[str]) -> None:
    """Log each as a warning."""
    for notice in notices:
        _log.warning("%s", notice)
