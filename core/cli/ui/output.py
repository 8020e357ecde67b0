"""Output: JSON documents to stdout, everything else to stderr."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from io import TextIOWrapper
from typing import Final, TextIO

from ...errors import FencepostError
from ...model.documents import readable

STDOUT: Final = 1
STDERR: Final = 2
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


WARNINGS: Final = logging.getLogger("fencepost.cli")
"""Takes what ``warn`` says, where a program that reads log records is meant to; else it has no handler."""


@contextmanager
def documents_only() -> Iterator[TextIO]:
    """Give stdout for our documents alone: what plugins print in the block goes to stderr.

    So does what their children and C libraries write to descriptor 1: within the block it is stderr, and stdout has a
    descriptor of its own, which children do not inherit.
    """
    out, behind = sys.stdout, _descriptor(sys.stdout)
    with ExitStack() as until_the_end:
        if behind == STDOUT:
            out.flush()
            out = until_the_end.enter_context(_moved_away(out))
        until_the_end.enter_context(redirect_stdout(sys.stderr))
        yield out


@contextmanager
def _moved_away(stdout: TextIO) -> Iterator[TextIO]:
    """Give stdout on another descriptor, and point descriptor 1 at stderr, until the block ends."""
    stderr = _descriptor(sys.stderr)
    kept = os.dup(STDOUT)
    own = open(kept, "w", encoding=stdout.encoding, errors=stdout.errors)  # noqa: SIM115 - closed below

    def leave_to_parent() -> None:
        if not own.closed:  # a forked child that lives on must not keep whoever reads from seeing the end
            os.dup2(STDOUT, kept, inheritable=False)

    os.dup2(STDERR if stderr is None else stderr, STDOUT)
    os.register_at_fork(after_in_child=leave_to_parent)
    try:
        yield own
    finally:
        os.dup2(kept, STDOUT)
        with suppress(OSError):  # what could not be written was told by ``write``
            own.close()


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):  # a stream in memory
        return None


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
    """Print a warning to stderr, or log it where every word on stderr is a log record."""
    if WARNINGS.handlers:
        WARNINGS.warning("%s", message)
        return
    print(f"fencepost: {message}", file=sys.stderr)


def wants_json(as_json: bool) -> bool:
    """Whether to print JSON: where it was asked for, and where stdout is not a terminal."""
    return as_json or not sys.stdout.isatty()
