"""The default effect: how many bytes and words a text has. Pure, and its rule is frozen (contract §8)."""

from __future__ import annotations

import re
from typing import Final

from fencepost.plugins import EffectInfo, hookimpl

# A word ends at a character with the Unicode property White_Space. str.split() ends one also at these four,
# which do not have it; so they are made letters first, in the few texts that have any.
_NOT_WHITE_SPACE: Final = re.compile("[\x1c-\x1f]")


@hookimpl
def effect_info() -> EffectInfo:
    """Name and summary; the rest is as it is for every pure effect."""
    return EffectInfo(name="count", summary="Counts the UTF-8 bytes and the words of the text.")


@hookimpl
def effect_outcome(text: str) -> dict[str, int]:
    """``bytes`` are UTF-8 bytes; ``words`` are the maximal runs of characters that are not white space."""
    words = _NOT_WHITE_SPACE.sub("x", text) if _NOT_WHITE_SPACE.search(text) else text
    return {"bytes": len(text.encode("utf-8")), "words": len(words.split())}
