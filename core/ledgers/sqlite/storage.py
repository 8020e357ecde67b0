"""SQLite files on storage that nobody can write to, such as a snapshot or an image: they can still be looked at."""

from __future__ import annotations

import os
from pathlib import Path


def on_read_only_storage(path: str) -> bool:
    """Whether the file lies on a file system that is mounted read-only."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except FileNotFoundError:
        return False


def look_uri(path: str) -> str:
    """The URI by which a file on such storage is opened.

    Beside a file that it opens, SQLite makes others, which cannot be made there. ``immutable`` lets it do without them,
    and so without the log: that is right only where the log is empty. With a log, SQLite needs the files that lie
    beside it already.
    """
    try:
        has_log = os.stat(f"{path}-wal").st_size > 0
    except FileNotFoundError:
        has_log = False
    return f"{Path(path).as_uri()}?mode=ro" + ("" if has_log else "&immutable=1")
