"""Effects that the outside world can count; loaded by the workers of a soak with ``--plugin``.

FENCEPOST_SOAK_WORLD is the folder that stands for the outside world.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from typing import Any

from fencepost.plugins import EffectInfo, hookimpl

WORLD = os.environ.get("FENCEPOST_SOAK_WORLD", "")


def record(room: str, id: str) -> None:
    """One line that says that the effect was applied; appended in one write, so that lines never mix."""
    descriptor = os.open(os.path.join(WORLD, room), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{id}\n".encode())
    finally:
        os.close(descriptor)


class Local:
    """May be repeated: at least one line for each job."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo("soak-local", "appends a line", delivery="local")

    @hookimpl
    def effect_apply(self, request: Any) -> dict[str, Any]:
        record("local", request.id)
        time.sleep(0.002)
        return {"applied": request.id}


class Keyed:
    """The receiver keeps the key: exactly one entry for each job, however often it is sent."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            "soak-keyed",
            "puts the id into a file named by the key",
            delivery="keyed",
            receiver_key="file name",
        )

    @hookimpl
    def effect_apply(self, request: Any) -> dict[str, Any]:
        # In one step, as a receiver's transaction would: whoever is killed has done it or has not.
        with tempfile.NamedTemporaryFile("w", dir=WORLD) as draft:
            draft.write(request.id)
            draft.flush()
            with contextlib.suppress(FileExistsError):
                os.link(draft.name, os.path.join(WORLD, "keys", request.idempotency_key))
        return {"key": request.idempotency_key}


class Once:
    """Can neither be repeated nor asked: at most one line for each job, and held where nobody knows."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo("soak-once", "appends a line, once", delivery="once")

    @hookimpl
    def effect_apply(self, request: Any) -> dict[str, Any]:
        record("once", request.id)
        time.sleep(0.002)
        return {"applied": request.id}


LOCAL, KEYED, ONCE = Local(), Keyed(), Once()
