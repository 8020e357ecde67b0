"""Stores for tests in PostgreSQL: each a schema, emptied and used again, as to make one costs fifty times as much."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from fencepost.core import Ledger, open_ledger
from fencepost.core.testing import Store

MANY: Final = 4
"""A test that asks for more stores is given those again whose ledgers it has closed."""

TABLES: Final = ("jobs", "dead", "inputs", "effects", "purged", "schedules", "paused", "audit")


@dataclass
class Schema:
    """One schema, and how many ledgers are open on it."""

    name: str
    lent: bool = False
    """Somebody has had its name, and may have used it in another process."""
    used: bool = False
    open: int = 0


class Schemas:
    """Lends schemas; those that come back are lent again. The user must be a superuser of the server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._free: list[Schema] = []
        self._numbers = itertools.count()

    @contextmanager
    def lend(self) -> Iterator[Callable[[], Store]]:
        """A function that makes stores; they end with the context."""
        lent: list[Schema] = []

        def fresh() -> Store:
            rested = [schema for schema in lent if schema.used and not schema.open]
            schema = rested[0] if len(lent) >= MANY and rested else self._take()
            if schema.lent:
                self._empty(schema)
            schema.lent = True
            if schema not in lent:
                lent.append(schema)
            return self._store(schema)

        yield fresh
        self._free += lent

    def _take(self) -> Schema:
        if self._free:
            return self._free.pop()
        return Schema(f"test_{os.getpid()}_{next(self._numbers)}")

    def _empty(self, schema: Schema) -> None:
        with psycopg.connect(self.url) as connection:
            # Inputs, receipts and the audit are insert-only by their triggers, which this passes by.
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("SET LOCAL lock_timeout = '10s'")
            if connection.execute("SELECT to_regnamespace(%s) IS NULL", (schema.name,)).fetchall()[0][0]:
                return
            for table in TABLES:
                connection.execute(f"DELETE FROM {schema.name}.fencepost_{table}".encode())
            connection.execute(
                f"UPDATE {schema.name}.fencepost_meta SET sealed_for = NULL, copying_from = NULL".encode()
            )
        schema.used, schema.open = False, 0

    def _store(self, schema: Schema) -> Store:
        name = f"{self.url}{'&' if '?' in self.url else '?'}fencepost_schema={schema.name}"

        def opened() -> Ledger:
            ledger: Any = open_ledger(name)
            schema.used = True
            schema.open += 1
            close = ledger.close

            def closing() -> None:
                nonlocal close
                close()
                if close is not do_nothing:
                    close = do_nothing
                    schema.open -= 1

            ledger.close = closing
            opened_ledger: Ledger = ledger
            return opened_ledger

        return Store(open=opened, name=name, connect=lambda: psycopg.connect(self.url))


def do_nothing() -> None:
    """For what is closed already."""
