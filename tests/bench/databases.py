"""Databases for the benches of PostgreSQL, and the jobs in them: every measure has one of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from fencepost.core import NewJob
from fencepost.core.ledgers.postgres import PostgresLedger

JOBS: Final = 20_000
REQUEST: Final = 1_000
TEXT: Final = "a few words for job {n}, as short as most are"

Raw = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a new database, which goes at the end."""
    name = f"bench_{random.getrandbits(48):012x}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield server.rpartition("/")[0] + "/" + name
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def count(connection: Raw, what: str) -> int:
    """How many rows there are; ``what`` is a table, and a condition where one is wanted."""
    return int(connection.execute(f"SELECT count(*) FROM {what}".encode()).fetchall()[0][0])


def texts(start: int, end: int) -> list[tuple[str, str]]:
    """Ids and texts of so many jobs."""
    return [(f"job-{n}", TEXT.format(n=n)) for n in range(start, end)]


def fill(url: str, jobs: int, effect: str = "count", *, prefix: str = "job") -> None:
    """So many queued jobs."""
    with PostgresLedger(url) as ledger:
        for start in range(0, jobs, REQUEST):
            numbers = range(start, min(start + REQUEST, jobs))
            ledger.enqueue(NewJob(f"{prefix}-{n}", TEXT.format(n=n), effect=effect) for n in numbers)
