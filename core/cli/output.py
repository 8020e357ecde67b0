"""What goes to stdout (one JSON document) and to stderr (all else)."""

from __future__ import annotations

import sys

from ..documents import readable


def print_document(document: object) -> None:
    """Print one JSON document, indented by two."""
    sys.stdout.buffer.write(readable(document))
    sys.stdout.buffer.flush()


def warn(message: str) -> None:
    """Say something to the person, not to the program that reads stdout."""
    print(f"fencepost: {message}", file=sys.stderr)


def for_a_program(as_json: bool) -> bool:
    """Whether to print JSON: where it was asked for, and wherever nobody looks at stdout."""
    return as_json or not sys.stdout.isatty()
