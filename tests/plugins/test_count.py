"""The default effect, whose rule is frozen (contract §8)."""

import ast
import inspect
import itertools
import sys

import pytest
from fencepost.effects import count
from fencepost.plugins.manager import Plugins
from hypothesis import given
from hypothesis import strategies as st

# PropList.txt of Unicode, White_Space: all of it, as the contract quotes it.
WHITE_SPACE = frozenset(
    {*range(0x0009, 0x000E), 0x0020, 0x0085, 0x00A0, 0x1680}
    | {*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
)


def words_by_the_rule(text: str) -> int:
    """Maximal runs of characters without White_Space, counted one character at a time."""
    spaces = [True, *(ord(character) in WHITE_SPACE for character in text)]
    return sum(before and not here for before, here in itertools.pairwise(spaces))


def test_every_code_point_separates_words_if_and_only_if_it_has_white_space():
    wrong = [
        f"U+{point:04X}"
        for point in range(sys.maxunicode + 1)
        if not 0xD800 <= point <= 0xDFFF
        and count.effect_outcome(f"a{chr(point)}b")["words"] != (2 if point in WHITE_SPACE else 1)
    ]
    assert wrong == []


def test_every_code_point_alone_is_a_word_if_and_only_if_it_is_not_white_space():
    wrong = [
        f"U+{point:04X}"
        for point in range(sys.maxunicode + 1)
        if not 0xD800 <= point <= 0xDFFF
        and count.effect_outcome(chr(point))["words"] != (0 if point in WHITE_SPACE else 1)
    ]
    assert wrong == []


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("\x1c\x1d\x1e\x1f \t\n\u3000\u200b")))
def test_any_text_is_counted_by_the_rule(text):
    assert count.effect_outcome(text) == {"bytes": len(text.encode()), "words": words_by_the_rule(text)}


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        ("", 0, 0),
        ("hello world", 11, 2),
        ("  hello \n world\t", 16, 2),
        ("naïve café", 12, 2),
        ("日本語　テキスト", 24, 2),
        ("a\x1cb\x1db\x1ec\x1fd", 9, 1),
        ("\x1f", 1, 1),
        ("a\0b", 3, 1),
        ("a\u200bb", 5, 1),
    ],
)
def test_known_texts(text, size, words):
    assert count.effect_outcome(text) == {"bytes": size, "words": words}


def test_it_is_there_without_any_metadata():
    plugins = Plugins.load(entry_points=False)
    assert "count" in plugins.effect_names()
    assert plugins.choose("count").outcome("two words") == {"bytes": 9, "words": 2}


def test_it_is_also_an_entry_point_and_still_one_effect():
    from importlib.metadata import entry_points

    assert [point.value for point in entry_points(group="fencepost", name="count")] == [
        "fencepost.effects.count"
    ]
    assert Plugins.load().effect_names().count("count") == 1


def test_it_uses_only_the_door_for_authors():
    tree = ast.parse(inspect.getsource(count))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith(("fencepost", "core", "."))} == {
        "fencepost.plugins"
    }
