"""Lists as parameters: JSON, for json_each."""

from __future__ import annotations

import json
from collections.abc import Iterable


def text_array(values: Iterable[str]) -> str:
    """A list of texts; without those that hold a NUL, where SQLite's JSON would end them: nothing is called so."""
    return json.dumps([value for value in values if "\0" not in value])
