"""The schema brought up to date on request: what ``fencepost migrate`` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.rows import tuple_row

from .address import Address, parse_address
from .errors import translate
from .migrations import (
    FOLDER,
    check_encoding,
    migrate,
    migrations,
    schema_version,
    script,
)
from .transaction import Connection


@dataclass(frozen=True, slots=True)
class Upgraded:
    """From which version to which."""

    location: str
    before: int
    """0: there was no ledger."""
    after: int


def upgrade(url: str, folder: Path = FOLDER) -> Upgraded:
    """Apply the migrations that are missing, in one transaction; the ledger is made where it is absent.

    Raises:
        LedgerVersion: made by a newer program.
        LedgerFailed: the server, the database's encoding, or this role's rights; nothing was changed.
    """
    address = parse_address(url)
    with _connected(address) as connection:
        before = migrate(connection, address, folder)
    return Upgraded(address.location, before, len(migrations(folder)))


def upgrade_script(url: str, folder: Path = FOLDER) -> str:
    """The SQL that ``upgrade`` would run, for somebody else to run."""
    address = parse_address(url)
    with _connected(address) as connection:
        version = schema_version(connection, address.schema)
    return script(address.schema, version, folder) or f"-- up to date, at version {version}\n"


@contextmanager
def _connected(address: Address) -> Iterator[Connection]:
    try:
        connection: Connection = psycopg.connect(address.conninfo, autocommit=True, row_factory=tuple_row)
        try:
            check_encoding(connection, address)
            yield connection
        finally:
            connection.close()
    except psycopg.Error as error:
        raise translate(error, address) from error
