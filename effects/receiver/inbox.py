"""The work of the runnable receiver: it puts each delivery into a table, once, for others to read."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from typing import Any, Final

from .protocol import Delivery
from .storage import create_table, wall_ms

LOCK_TIMEOUT_S: Final = 10.0

_CREATE: Final = """
    CREATE TABLE IF NOT EXISTS inbox (
        number INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        job TEXT,
        content_type TEXT,
        body BLOB NOT NULL,
        received_at_ms INTEGER NOT NULL
    )
"""
_ADD: Final = "INSERT INTO inbox (key, job, content_type, body, received_at_ms) VALUES (?, ?, ?, ?, ?)"


class Inbox:
    """A SQLite file with the tables ``inbox`` and ``fencepost_received``; made where it is absent."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self.connect() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_CREATE)
            create_table(connection)

    def connect(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection of its own; every commit is on the disk before it returns."""
        connection = sqlite3.connect(self._path, timeout=LOCK_TIMEOUT_S)
        connection.execute("PRAGMA synchronous = FULL")
        return closing(connection)

    @staticmethod
    def add(connection: sqlite3.Connection, delivery: Delivery) -> dict[str, Any]:
        """Put the delivery into the table. The key is not unique there: only the receiver keeps a second row away."""
        cursor = connection.execute(
            _ADD, (delivery.key, delivery.job, delivery.content_type, delivery.body, wall_ms())
        )
        return {"number": cursor.lastrowid, "bytes": len(delivery.body), "sha256": delivery.digest}
