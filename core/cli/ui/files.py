"""Reading the files that a person names on the command line."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from ...errors import InvalidInput


@contextmanager
def open_input(name: str) -> Iterator[IO[bytes]]:
    """Open the file of that name, or stdin for ``-``, until the block ends."""
    if name == "-":
        if sys.stdin is None:
            raise InvalidInput("stdin is closed: name a file, or pipe the records in")
        yield sys.stdin.buffer
        return
    try:
        stream = open(name, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror or error}") from error
    with stream:
        yield stream


def input_name(name: str) -> str:
    """What messages call the input."""
    return "stdin" if name == "-" else name


def size_of(stream: IO[bytes]) -> int | None:
    """Return how many bytes there are to read; None where that is not known beforehand."""
    try:
        found = os.fstat(stream.fileno())
    except OSError:  # a stream without a descriptor, such as another program's own
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
