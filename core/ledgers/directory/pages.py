"""The encoded rows of ``jobs.json`` in order of enqueue, joined by pages: a write joins only those that changed."""

from __future__ import annotations

from typing import Final

PAGE_ROWS: Final = 64
"""Joining thousands of rows takes longer than all else that Python does for a job; joining 64 takes microseconds."""


class Pages:
    """Rows by the number that their id was given in order of enqueue."""

    def __init__(self) -> None:
        # New numbers are the largest, so that both stay in order; a page of which all rows went is dropped.
        self._pages: dict[int, dict[int, bytes]] = {}
        self._joined: dict[int, bytes] = {}
        self._count = 0
        self._bytes = 0

    @property
    def size(self) -> int:
        """The size of the document in bytes."""
        return self._bytes + 2 * max(0, self._count - 1) + 5

    def put(self, number: int, row: bytes) -> None:
        """Append a row with a new number, or put another one in its place."""
        page = number // PAGE_ROWS
        rows = self._pages.setdefault(page, {})
        old = rows.get(number)
        if old is None:
            self._count += 1
        else:
            self._bytes -= len(old)
        self._bytes += len(row)
        rows[number] = row
        self._joined.pop(page, None)

    def drop(self, number: int) -> None:
        """Take a row out."""
        page = number // PAGE_ROWS
        rows = self._pages[page]
        self._bytes -= len(rows.pop(number))
        self._count -= 1
        self._joined.pop(page, None)
        if not rows:
            del self._pages[page]

    def document(self) -> bytes:
        """The whole file: a JSON array, a newline at the end."""
        if not self._pages:
            return b"[]\n"
        parts = [self._join(page) for page in self._pages]
        parts[0] = b"[\n" + parts[0]
        parts[-1] += b"\n]\n"
        return b",\n".join(parts)

    def _join(self, page: int) -> bytes:
        joined = self._joined.get(page)
        if joined is None:
            joined = self._joined[page] = b",\n".join(self._pages[page].values())
        return joined
