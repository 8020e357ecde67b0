"""The garbage collector as the command that is measured has it, and as it was for whatever is measured next."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from fencepost.core.cli.garbage import keep_what_start_has_made


@contextmanager
def as_in_a_following_worker() -> Iterator[None]:
    """What ``fencepost worker --follow`` does before its first claim. Peers have the collector as their programs do."""
    keep_what_start_has_made()
    try:
        yield
    finally:
        gc.unfreeze()
