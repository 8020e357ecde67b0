"""The garbage collector while the program starts: it waits, for there is no garbage yet."""

from __future__ import annotations

import gc
from typing import Any, Final

FIRST: Final = 50_000
"""The first collection comes after so many objects; a command has made 30,000 when its work begins."""
USUAL: Final = gc.get_threshold()


def wait_while_starting() -> None:
    """Put the first collection off; from then on the collector is as it was.

    Imports make objects that stay. Python would look through them all every few hundred, which took a sixth of the
    time in which a command starts.
    """
    if _go_on not in gc.callbacks:
        gc.callbacks.append(_go_on)
        gc.set_threshold(FIRST, *USUAL[1:])


def _go_on(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        gc.set_threshold(*USUAL)
        gc.callbacks.remove(_go_on)
