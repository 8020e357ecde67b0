"""Output: JSON documents to stdout, everything else to stderr."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import TextIOWrapper
from typing import Final, TextIO

from ...errors import FencepostError
from ...model.documents import readable

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@contextmanager
def documents_only() -> Iterator[TextIO]:
    """Give stdout for our documents alone: what plugins print in the block goes to stderr."""
    out = sys.stdout
    with redirect_stdout(sys.stderr):
        yield out


def print_document(document: object, out: TextIO | None = None) -> None:
    """Print one JSON document, indented by two, to stdout or to the stream that ``documents_only`` gave."""
    write(readable(printable(document)), sys.stdout if out is None else out)


def printable(document: object) -> object:
    """Return the document with U+FFFD for what UTF-8 cannot carry: bytes of a file's name that are no text."""
    if isinstance(document, str):
        return document if document.isascii() else _SURROGATE.sub("\ufffd", document)
    if isinstance(document, Mapping):
        return {printable(key): printable(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [printable(value) for value in document]
    return document


def replace_unprintable() -> None:
    """Let stdout replace characters that its encoding has not, from now on, instead of failing after the work."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def write(data: bytes, out: TextIO) -> None:
    """Write the bytes and flush them.

    Raises:
        FencepostError: they cannot be written.
    """
    try:
        out.buffer.write(data)
        out.buffer.flush()
    except BrokenPipeError:  # the reader has gone, and needs no message
        raise
    except OSError as error:
        raise unwritable(error) from error


def unwritable(error: OSError) -> FencepostError:
    """Return the error that says that stdout cannot be written."""
    return FencepostError(
        f"stdout cannot be written: {error.strerror or error}; what was done stays done (see fencepost status)"
    )


def warn(message: str) -> None:
    """Print a warning to stderr."""
    print(f"fencepost: {message}", file=sys.stderr)


def wants_json(as_json: bool) -> bool:
    """Whether to print JSON: where it was asked for, and where stdout is not a terminal."""
    return as_json or not sys.stdout.isatty()
