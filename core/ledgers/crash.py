"""Named crash points: where a test may kill the process, between any two steps that change a store.

A ledger reports each step by name to the ``Step`` that it was given. In use that does nothing; a test gives
``kill_at``, which ends the process as a power cut would, with no clean-up and no flushing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final

Step = Callable[[str], None]

EXIT_CODE: Final = 86
"""Exit status of a worker that was told to crash (``--crash-after``)."""


def pass_by(name: str) -> None:
    """The step of everyday use: go on."""


def kill_at(name: str, nth: int = 1) -> Step:
    """A step that kills this process with SIGKILL when ``name`` is reached for the ``nth`` time."""
    left = nth

    def step(reached: str) -> None:
        nonlocal left
        if reached == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return step
