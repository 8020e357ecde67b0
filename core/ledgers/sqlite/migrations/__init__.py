"""The schema, step by step: numbered files, each applied once, under the write lock, recorded with its change."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from ....errors import LedgerVersion

FOLDER: Final = Path(__file__).parent

_FILE: Final = re.compile(r"(\d{4})_\w+\.sql")
_RECORD: Final = """
    INSERT INTO fencepost_meta (only_row, schema_version) VALUES (1, ?)
    ON CONFLICT (only_row) DO UPDATE SET schema_version = excluded.schema_version
"""


def migrations(folder: Path = FOLDER) -> list[Path]:
    """The files, in order; the n-th carries the number n."""
    files = sorted(file for file in folder.iterdir() if _FILE.fullmatch(file.name))
    for number, file in enumerate(files, 1):
        if int(file.name[:4]) != number:
            raise ValueError(f"migration {file.name} should be number {number:04}")
    return files


def schema_version(connection: sqlite3.Connection) -> int:
    """The number of the last migration that was applied; 0 where there is no ledger yet."""
    try:
        row = connection.execute("SELECT schema_version FROM fencepost_meta").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return 0
    return int(row[0])


def damaged_objects(connection: sqlite3.Connection) -> list[str]:
    """The tables, indexes and triggers of ours that are missing, or not as the migrations make them, by name."""
    found = _objects(connection)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, ":memory:")
        return sorted(name for name, sql in _objects(fresh).items() if found.get(name) != sql)


def _objects(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name LIKE 'fencepost@_%' ESCAPE '@'")
    return dict(rows.fetchall())


def migrate(connection: sqlite3.Connection, path: str, folder: Path = FOLDER) -> None:
    """Bring the schema up to date; does nothing, and takes no lock, where it is.

    Raises:
        LedgerVersion: made by a newer program.
    """
    if _is_current(connection, path, migrations(folder)):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again under the lock: another process may just have done it.
        migrate_within(connection, path, folder)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def migrate_within(connection: sqlite3.Connection, path: str, folder: Path = FOLDER) -> None:
    """The same, as a part of the transaction that is open."""
    files = migrations(folder)
    if _is_current(connection, path, files):
        return
    for number, file in enumerate(files, 1):
        if number > schema_version(connection):
            for statement in _statements(file.read_text("utf-8")):
                connection.execute(statement)
            connection.execute(_RECORD, (number,))


def _is_current(connection: sqlite3.Connection, path: str, files: list[Path]) -> bool:
    found, latest = schema_version(connection), len(files)
    if found > latest:
        raise LedgerVersion(
            f"{path}: its schema has version {found}, this program knows {latest} and older; "
            "use the newer program that made it"
        )
    return found == latest


def _statements(script: str) -> Iterator[str]:
    """The single statements of a script (``executescript`` would commit what is open)."""
    part = ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            yield part
            part = ""
    if re.sub(r"--.*", "", part).strip():
        raise ValueError(f"a migration ends in an unfinished statement: {part.strip()[:80]}")
