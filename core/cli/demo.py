"""``fencepost demo``: a worker dies after its effect; the next one finishes the job without repeating the effect."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Annotated, Final

import typer

from ..errors import FencepostError
from ..ledgers.crash import EXIT_CODE

LEASE: Final = ("--lease-ms", "10")


def demo(
    input: Annotated[
        str, typer.Option("--input", metavar="FILE", help="A JSON array of {id, text}; - is stdin.")
    ],
) -> None:
    """Show a crash and its recovery on a store of its own, which is removed afterwards.

    It runs five processes and prints what each prints: enqueue; a worker that dies right after its first effect;
    status; the next worker, once the dead one's lease has ended; status. Times are logical, in ms: 100, a lease of
    10, then 111.

    Example: fencepost demo --input docs/samples/jobs.json
    """
    with tempfile.TemporaryDirectory(prefix="fencepost-demo-") as folder:
        store = ("--store", os.path.join(folder, "store"))
        steps: tuple[tuple[int, tuple[str, ...]], ...] = (
            (0, ("enqueue", *store, "--input", input)),
            (EXIT_CODE, ("worker", *store, "--now-ms", "100", *LEASE, "--crash-after", "effect")),
            (0, ("status", *store)),
            (0, ("worker", *store, "--now-ms", "111", *LEASE, "--max-jobs", "100")),
            (0, ("status", *store)),
        )
        shown = [_child(arguments, expected) for expected, arguments in steps]
    sys.stdout.buffer.write(b"".join(shown))
    sys.stdout.buffer.flush()


def _child(arguments: tuple[str, ...], expected: int) -> bytes:
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "fencepost.core.cli", *arguments], stdout=subprocess.PIPE, check=False
    )
    if ended.returncode != expected:
        raise FencepostError(
            f"the demo's step `{arguments[0]}` ended with status {ended.returncode}, expected was {expected}"
        )
    return ended.stdout
