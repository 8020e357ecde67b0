"""The schema, step by step: numbered files, each applied once, under a lock, recorded with its change.

What is absent is made by whoever opens the ledger first; an older schema is brought up to date only on request,
because it is shared with programs on other machines.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ....errors import LedgerFailed, LedgerVersion
from ..address import DEFAULT_SCHEMA, Address
from ..transaction import Connection

FOLDER: Final = Path(__file__).parent

_FILE: Final = re.compile(r"(\d{4})_\w+\.sql")
_OBJECT: Final = re.compile(
    r"^CREATE (?:TABLE|INDEX|VIEW|SEQUENCE|FUNCTION|TRIGGER) (?:\{schema\}\.)?(fencepost_\w+)", re.MULTILINE
)
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('fencepost_migrations {schema}', 0));"
"""Of the transaction, so that it works through a pooler, too."""
_EXISTS: Final = """
    SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %s AND relname = 'fencepost_meta'
"""
"""Asked of the catalogue: to_regclass goes on denying what another session has made since it was first asked."""
_VERSION: Final = "SELECT schema_version FROM {schema}.fencepost_meta"
_SCHEMA: Final = """
DO $$ BEGIN
    IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {schema}; END IF;
END $$;
""".strip()
"""Not by IF NOT EXISTS, for which one must be allowed to make schemas even where there is nothing to make."""
_FIRST: Final = "INSERT INTO {schema}.fencepost_meta (schema_version) VALUES ({number});"
_NEXT: Final = "UPDATE {schema}.fencepost_meta SET schema_version = {number};"


def migrations(folder: Path = FOLDER) -> list[Path]:
    """The files, in order; the n-th carries the number n."""
    files = sorted(file for file in folder.iterdir() if _FILE.fullmatch(file.name))
    for number, file in enumerate(files, 1):
        if int(file.name[:4]) != number:
            raise ValueError(f"migration {file.name} should be number {number:04}")
    return files


def object_names(folder: Path = FOLDER) -> set[str]:
    """What the migrations make: tables, indexes, views, sequences, functions and triggers."""
    return {name for file in migrations(folder) for name in _OBJECT.findall(file.read_text("utf-8"))}


def schema_version(connection: Connection, schema: str) -> int:
    """The number of the last migration that was applied; 0 where there is no ledger yet."""
    if not connection.execute(_EXISTS, (schema,)).fetchall():
        return 0
    rows = connection.execute(_VERSION.replace("{schema}", f'"{schema}"').encode()).fetchall()
    return int(rows[0][0]) if rows else 0


def check_encoding(connection: Connection, address: Address) -> None:
    """Look whether the database can carry every text.

    Raises:
        LedgerFailed: it is of another encoding than UTF8.
    """
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise LedgerFailed(
            f"{address.location}: the database's encoding is {encoding}, it must be UTF8: make another with "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )


def script(schema: str, version: int, folder: Path = FOLDER) -> str:
    """The SQL that brings a schema of that version up to date, as one transaction; empty where it is."""
    steps = _steps(schema, version, folder)
    return "\n\n".join(["BEGIN;", _lock(schema), *steps, "COMMIT;"]) + "\n" if steps else ""


def make(connection: Connection, address: Address, folder: Path = FOLDER) -> None:
    """Make the tables where there are none; otherwise only look whether they are those of this program.

    Raises:
        LedgerVersion: made by a newer program, or by an older one and not yet migrated.
    """
    found = _known_version(connection, address, folder)
    if found == 0:
        migrate(connection, address, folder)
    elif found < (latest := len(migrations(folder))):
        raise LedgerVersion(
            f"{address.location}: its schema has version {found}, this program needs {latest}: run fencepost migrate "
            "with this --store; programs that are running go on meanwhile"
        )


def migrate(connection: Connection, address: Address, folder: Path = FOLDER) -> int:
    """Bring the schema up to date, and return the version that it had; does nothing where it is.

    Raises:
        LedgerVersion: made by a newer program.
    """
    found = _known_version(connection, address, folder)
    if found < len(migrations(folder)):
        with connection.transaction():
            connection.execute(_lock(address.schema).encode())
            # Asked again under the lock: another program may just have done it.
            found = _known_version(connection, address, folder)
            for step in _steps(address.schema, found, folder):
                connection.execute(step.encode())
    return found


def _known_version(connection: Connection, address: Address, folder: Path) -> int:
    found, latest = schema_version(connection, address.schema), len(migrations(folder))
    if found > latest:
        raise LedgerVersion(
            f"{address.location}: its schema has version {found}, this program knows {latest} and older; "
            "use the newer program that made it"
        )
    return found


def _steps(schema: str, version: int, folder: Path) -> list[str]:
    steps = []
    for number, file in enumerate(migrations(folder), 1):
        if number > version:
            record = _FIRST if number == 1 else _NEXT
            steps += [file.read_text("utf-8").strip(), record.replace("{number}", str(number))]
    if version == 0 and schema != DEFAULT_SCHEMA:
        steps.insert(0, _SCHEMA)
    return [step.replace("{schema}", f'"{schema}"') for step in steps]


def _lock(schema: str) -> str:
    return _LOCK.replace("{schema}", schema)
