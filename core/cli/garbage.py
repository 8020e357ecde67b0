"""The garbage collector while the program starts and ends: there is no garbage yet, and none that matters any more.

And while a worker goes on for months: what its start has made is no garbage, either.
"""

from __future__ import annotations

import atexit
import gc
from typing import Any, Final

FIRST: Final = 50_000
"""The first collection comes after so many objects; a command has made 30,000 when its work begins."""
USUAL: Final = gc.get_threshold()


def wait_while_starting() -> None:
    """Put the first collection off; from then on the collector is as it was.

    Imports make objects that stay. Python would look through them all every few hundred, and once more when it ends,
    when the system takes everything back anyway: together that took a fifth of the time of a short command.
    """
    if _go_on not in gc.callbacks:
        gc.callbacks.append(_go_on)
        atexit.register(gc.freeze)  # what is frozen is not looked through
        gc.set_threshold(FIRST, *USUAL[1:])


def keep_what_start_has_made() -> None:
    """Never look through what is there now.

    A worker makes some objects for each job, and lets go of them a thousand jobs later: that has Python look through
    everything there is, every module included, over and over. It took 6 % of the time of a quick job.
    """
    gc.freeze()


def _go_on(phase: str, _: dict[str, Any]) -> None:
    if phase == "stop":
        gc.set_threshold(*USUAL)
        gc.callbacks.remove(_go_on)
