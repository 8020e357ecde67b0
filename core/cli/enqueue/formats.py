"""What a file is that holds no request: its format by name, and what to do about it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from ...errors import InvalidInput
from ...model.documents import parse

_MAGIC: Final = (
    (
        b"\x1f\x8b",
        "it is compressed with gzip: unpack it first (gunzip FILE), or pipe it in (zcat FILE | … --input -)",
    ),
    (b"BZh", "it is compressed with bzip2: unpack it first (bunzip2 FILE)"),
    (b"\xfd7zXZ\x00", "it is compressed with xz: unpack it first (unxz FILE)"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd: unpack it first (unzstd FILE)"),
    (b"PK\x03\x04", "it is a ZIP archive: unpack it first"),
    (b"SQLite format 3\x00", "it is a SQLite file, not a request: did you mean --store?"),
)
"""How such files begin."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff", b"[\0", b"\0[", b"{\0", b"\0{")
"""How UTF-16 begins, with its mark or without."""

Wanted = Literal["array", "lines"]


@contextmanager
def named_format(data: bytes, *, what: str, wanted: Wanted) -> Iterator[None]:
    """Read a request in the block: where that fails because ``data`` is of another format, say which.

    ``data`` is the whole document, or the first of several lines.

    Raises:
        InvalidInput: the block raised it; the message names the format where it is known.
    """
    try:
        yield
    except InvalidInput as error:
        reason = _other_format(data, wanted)
        if reason is None:
            raise
        raise InvalidInput(f"{what}: {reason}") from error


def _other_format(data: bytes, wanted: Wanted) -> str | None:
    for magic, reason in _MAGIC:
        if data.startswith(magic):
            return reason
    if data.startswith(_UTF_16):
        return "it is UTF-16, not UTF-8: save it as UTF-8 without a byte order mark"
    first, _, rest = data.lstrip().partition(b"\n")
    if wanted == "array" and rest.strip() and _is_object(first):
        return (
            "it is JSON Lines, one record a line: say --lines, or name the file .jsonl (SQL ledgers take it), or make "
            "it one JSON array"
        )
    if wanted == "lines" and first.startswith(b"["):
        return "it is a JSON array: leave --lines out, and name the file .json"
    if _is_csv(first):
        return 'it is CSV, not JSON: make each row an object {"id": …, "text": …} of one JSON array'
    return None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parse(line, what="the line"), dict)
    except InvalidInput:
        return False


def _is_csv(line: bytes) -> bool:
    """Whether a first line is plain text in columns: neither JSON, nor prose."""
    text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    if not text or text[0] in "[{" or (not text.isprintable() and "\t" not in text):
        return False
    return any(len(next(csv.reader([text], delimiter=sign))) > 1 for sign in ",;\t")
