"""The effect ``letter``: writes the job's text as one file, outside the store, whole or not at all.

Its delivery is ``local``: the file is named by the idempotency key, so that a second attempt writes the same file
again instead of another one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencepost.plugins import (
    EffectInfo,
    EffectRequest,
    PluginError,
    Setting,
    hookimpl,
)


class Letters:
    """A plugin may be a module or, as here, an object that keeps what it was configured with."""

    folder = Path()

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            name="letter",
            summary="Writes the text as a file into a folder.",
            delivery="local",
            settings={"folder": Setting("The folder that the letters go to; it must exist.", required=True)},
        )

    @hookimpl
    def effect_configure(self, settings: Mapping[str, Any]) -> None:
        self.folder = Path(settings["folder"]).absolute()
        if not self.folder.is_dir():
            raise PluginError(f"there is no folder {self.folder}: make it, or set another one")

    @hookimpl
    def effect_validate(self, text: str) -> None:
        if not text.strip():
            raise ValueError("a letter must say something")

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, str]:
        letter = self.folder / f"{request.idempotency_key}.txt"
        # Each attempt has a draft of its own: of two at once, neither touches the other's.
        draft = self.folder / f".{request.idempotency_key}.{request.fence}"
        with open(draft, "w", encoding="utf-8", newline="") as file:
            file.write(request.text)
            file.flush()
            request.mark("written")
            os.fsync(file.fileno())
        os.replace(draft, letter)
        request.mark("in place")
        self._make_the_name_durable()
        return {"file": letter.name}

    def _make_the_name_durable(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


plugin = Letters()
