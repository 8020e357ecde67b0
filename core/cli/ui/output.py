"""What goes to stdout (one JSON document) and to stderr (all else)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from ...errors import FencepostError
from ...model.documents import readable


@contextmanager
def documents_only() -> Iterator[TextIO]:
    """Give stdout for our documents alone: what plugins print in the block goes to stderr."""
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield out


def print_document(document: object, out: TextIO | None = None) -> None:
    """Print one JSON document, indented by two; to stdout, or to what ``documents_only`` gave."""
    write(readable(document), sys.stdout if out is None else out)


def write(data: bytes, out: TextIO) -> None:
    """Write the bytes through.

    Raises:
        FencepostError: they cannot be written.
    """
    try:
        out.buffer.write(data)
        out.buffer.flush()
    except BrokenPipeError:  # whoever read has gone, and needs no message
        raise
    except OSError as error:
        raise unwritable(error) from error


def unwritable(error: OSError) -> FencepostError:
    """What to say when stdout takes no more."""
    return FencepostError(
        f"stdout cannot be written: {error.strerror or error}; what was done stays done (see fencepost status)"
    )


def warn(message: str) -> None:
    """Say something to the person, not to the program that reads stdout."""
    print(f"fencepost: {message}", file=sys.stderr)


def for_a_program(as_json: bool) -> bool:
    """Whether to print JSON: where it was asked for, and wherever nobody looks at stdout."""
    return as_json or not sys.stdout.isatty()
