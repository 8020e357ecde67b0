"""Strict JSON: exactly one document, UTF-8 without BOM, no duplicate keys, no NaN, bounded in size.

Everything that comes from outside (requests, the directory ledger's files, outcomes of effects) is read here.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from ..errors import InvalidInput, LimitExceeded

JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"

MAX_DOCUMENT_BYTES: Final = 4 * 1024 * 1024
BOM: Final = b"\xef\xbb\xbf"


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidInput(f"the key {twice!r} stands twice in one object")
    return members


def _no_constant(name: str) -> NoReturn:
    raise InvalidInput(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidInput(f"the number {digits[:40]} is too large")
    return number


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_constant=_no_constant, parse_float=_finite
)


def _encoder(*, sort_keys: bool) -> Callable[[object], str]:
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
    )
    make: Any = json.encoder.c_make_encoder  # type: ignore[attr-defined]
    if make is None:
        return encoder.encode
    # JSONEncoder.encode makes this machine anew for every value, which takes five times as long as using it.
    chunks = make(
        None, encoder.default, json.encoder.encode_basestring, None, ":", ",", sort_keys, False, False
    )
    return lambda value: "".join(chunks(value, 0))


_COMPACT: Final = _encoder(sort_keys=False)
_CANONICAL: Final = _encoder(sort_keys=True)


def parse(data: bytes, *, what: str, max_bytes: int = MAX_DOCUMENT_BYTES) -> object:
    """Read the one JSON document in ``data``; ``what`` names it in errors.

    Raises:
        InvalidInput: not exactly one strict document.
        LimitExceeded: more than ``max_bytes``.
    """
    if len(data) > max_bytes:
        raise LimitExceeded(
            f"{what}: more than {max_bytes:,} bytes, the most that is allowed in one document"
        )
    if data.startswith(BOM):
        raise InvalidInput(f"{what}: starts with a byte order mark; save it as UTF-8 without BOM")
    if not data or data.isspace():
        found = "it holds only blanks" if data else "it is empty"
        raise InvalidInput(f"{what}: not one JSON document: {found}")
    try:
        document: object = _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except json.JSONDecodeError as error:
        reason = "a second document or stray text follows" if error.msg == "Extra data" else error.msg
        raise InvalidInput(f"{what}: not one JSON document: {reason} (line {error.lineno})") from error
    except RecursionError as error:
        raise InvalidInput(f"{what}: nested too deeply") from error
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from error
    except ValueError as error:  # all that int() can say of an integer's digits: that they are too many
        raise InvalidInput(
            f"{what}: a whole number in it is too long; at most {sys.get_int_max_str_digits():,} digits are read"
        ) from error
    return document


def compact(value: object) -> str:
    """JSON on one line, characters as they are."""
    return _COMPACT(value)


def canonical(value: object) -> str:
    """JSON with sorted keys: two values are equal by value and JSON type if and only if their texts are."""
    return _CANONICAL(value)


def readable(value: object) -> bytes:
    """JSON for files and terminals: indented by two, characters as they are, a newline at the end."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode("utf-8")
