"""Settings of Python's garbage collector: off while the program starts and ends, and sparing in a worker."""

from __future__ import annotations

import atexit
import gc
from typing import Any, Final

FIRST: Final = 50_000
"""The first collection comes after this many objects; a command has made 30,000 when its work begins."""
USUAL: Final = gc.get_threshold()


def wait_while_starting() -> None:
    """Put the first collection off; after it the collector works as usual.

    Imports make objects that stay. Python would examine all of them every few hundred, and once more when it ends,
    although the system frees everything then: together that took a fifth of the time of a short command.
    """
    if _go_on not in gc.callbacks:
        gc.callbacks.append(_go_on)
        atexit.register(gc.freeze)  # frozen objects are not examined
        gc.set_threshold(FIRST, *USUAL[1:])


def keep_what_start_has_made() -> None:
    """Exempt the objects that are there now from every later collection.

    A worker makes some objects for each job, and drops them a thousand jobs later. That makes Python examine every
    object again and again, those of every module included, which took 6% of the time of a quick job.
    """
    gc.freeze()


def _go_on(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        gc.set_threshold(*USUAL)
        gc.callbacks.remove(_go_on)
