"""Lists as parameters: array literals and binary arrays. psycopg's own adaption of lists costs five times as much."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

from ...model.inputs import is_name

_BYTEA: Final = 17
_BYTEA_ARRAY: Final = 1001

_length: Final = struct.Struct("!i").pack
_header: Final = struct.Struct("!iiIii").pack


def text_array(values: Sequence[str | None]) -> str:
    """A literal for ``::text[]``."""
    try:
        joined = '","'.join(values)  # type: ignore[arg-type]
    except TypeError:
        return f"{{{','.join('NULL' if value is None else _quoted(value) for value in values)}}}"
    if "\\" in joined or joined.count('"') != 2 * max(len(values) - 1, 0):
        return f"{{{','.join(_quoted(value) for value in values if value is not None)}}}"
    return f'{{"{joined}"}}' if values else "{}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def askable(ids: Iterable[str]) -> list[str]:
    """Those that could be the id of something; what PostgreSQL's text cannot carry is not sent."""
    wanted = list(ids)
    joined = "".join(wanted)
    if joined.isascii() and "\0" not in joined:
        return wanted
    return [id for id in wanted if is_name(id)]


def int_array(values: Iterable[int | None]) -> str:
    """A literal for ``::bigint[]``."""
    return f"{{{','.join(['NULL' if value is None else str(value) for value in values])}}}"


class ByteaArray(bytes):
    """A ``bytea[]`` as it goes over the wire; its placeholder is ``%b``."""


def bytea_array(values: Sequence[bytes]) -> ByteaArray:
    """One dimension, counted from 1, each element after its length."""
    if not values:
        return ByteaArray(struct.pack("!iiI", 0, 0, _BYTEA))
    parts = [_header(1, 0, _BYTEA, len(values), 1)]
    for value in values:
        parts += (_length(len(value)), value)
    return ByteaArray(b"".join(parts))


class _ByteaArrayDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY

    def dump(self, obj: ByteaArray) -> Buffer:
        return obj


def adapt(adapters: AdaptersMap) -> None:
    """Teach a map of adapters to send a ``ByteaArray``."""
    adapters.register_dumper(ByteaArray, _ByteaArrayDumper)
