"""The rows of jobs.json, joined page by page, are the same document as all of them joined at once."""

from __future__ import annotations

from fencepost.core.ledgers.directory.pages import PAGE_ROWS, Pages
from hypothesis import given
from hypothesis import strategies as st

MOVES = st.lists(
    st.tuples(
        st.sampled_from(["append", "replace", "drop", "write"]),
        st.integers(0, 3 * PAGE_ROWS),
        st.binary(min_size=1, max_size=9),
    ),
    max_size=200,
)


def whole(rows: dict[int, bytes]) -> bytes:
    return b"[\n" + b",\n".join(rows.values()) + b"\n]\n" if rows else b"[]\n"


@given(first=st.integers(0, 3 * PAGE_ROWS), moves=MOVES)
def test_whatever_is_changed_the_document_is_that_of_all_rows_in_their_order(
    first: int, moves: list[tuple[str, int, bytes]]
) -> None:
    pages, rows = Pages(), dict.fromkeys(range(first), b"row")
    for number, row in rows.items():
        pages.put(number, row)
    last = first
    for move, which, row in moves:
        there = list(rows)[which % len(rows)] if rows else None
        if move == "append":
            rows[last] = row
            pages.put(last, row)
            last += 1
        elif move == "write":
            assert pages.document() == whole(rows)
        elif there is not None and move == "replace":
            rows[there] = row
            pages.put(there, row)
        elif there is not None:
            del rows[there]
            pages.drop(there)
    assert pages.document() == whole(rows)
    assert pages.size == max(5, len(whole(rows)))
