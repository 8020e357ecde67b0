"""Which job the running code makes an attempt at: what log records are marked with."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from ..model.job import Job

CURRENT_JOB: Final[ContextVar[Job | None]] = ContextVar("fencepost_current_job", default=None)
"""The claimed job of the attempt that this thread or task makes; None outside an attempt.

``asyncio.to_thread`` and tasks carry it on; a thread that an effect starts by itself does not, unless it runs in
``contextvars.copy_context()``.
"""
