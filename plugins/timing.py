"""Middleware that ships as an example: logs how long each effect took. Use it with ``--plugin timing``.

A wrapper runs up to its ``yield``, then the effect, then the rest; it must give on what it got.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from fencepost.plugins import EffectInfo, EffectRequest, hookimpl

_log = logging.getLogger("fencepost.timing")


@hookimpl(wrapper=True)
def effect_outcome(text: str, info: EffectInfo) -> Generator[None, Any, Any]:
    """Time a pure effect."""
    with _timed(info.name, f"{len(text)} characters"):
        return (yield)


@hookimpl(wrapper=True)
def effect_apply(request: EffectRequest, info: EffectInfo) -> Generator[None, Any, Any]:
    """Time an acting effect, whether it succeeds or raises."""
    with _timed(info.name, f"job {request.id}, attempt {request.attempt}"):
        return (yield)


@contextmanager
def _timed(effect: str, what: str) -> Generator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        _log.info("%s took %.3f ms (%s)", effect, (time.perf_counter() - started) * 1_000, what)
