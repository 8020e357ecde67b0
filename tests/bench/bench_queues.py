"""What many queues and jobs of paused ones cost the SQL ledgers' claims, and the verbs beside them.

    python -m tests.bench.bench_queues [sqlite] [postgres]

A ledger with 10,000 queues is asked in turns with one that has as many jobs in one queue; a claim beside a million
paused jobs, which were passed over, in turns with one that has none.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import psycopg
from fencepost.core import ClaimRequest, Ledger, NewJob
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.ledgers.sqlite import SqliteLedger

from tests.bench.databases import database
from tests.bench.harness import Line
from tests.postgres_server import server_url

JOBS: Final = 20_000
REQUEST: Final = 10_000
QUEUES: Final = 10_000
AHEAD: Final = 1_000_000
ROUNDS: Final = 60
AT_MS: Final = 10_000_000
CLAIM: Final = ClaimRequest(claimant="bench", lease_ms=600_000, max_attempts=3, limit=10, effects=["count"])

VERBS: Final[dict[str, Callable[[Ledger], object]]] = {
    "claim 10": lambda ledger: ledger.claim(CLAIM, now_ms=AT_MS),
    "next_due_ms": lambda ledger: ledger.next_due_ms(effects=["count"]),
    "sweep": lambda ledger: ledger.sweep_expired(now_ms=AT_MS),
    "tick": lambda ledger: ledger.tick(now_ms=AT_MS),
}

NUMBERS: Final = {
    "SQLite": "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {ahead})",
    "PostgreSQL": "WITH number (n) AS (SELECT generate_series(1, {ahead}))",
}
PAUSED: Final = (
    "{numbers} INSERT INTO fencepost_jobs (key, id, version, queue, effect, priority, enqueued_at_ms) "
    "SELECT 100000 + n, 'paused-' || n, 0, 'mail', 'count', 9, n FROM number"
)

NewStore = Callable[[], str]


def opened(store: str) -> SqliteLedger | PostgresLedger:
    """The ledger there; SQLite's without fsyncs, which would hide what is measured."""
    return PostgresLedger(store) if "://" in store else SqliteLedger(store, synchronous="OFF")


def fill(store: str, queues: int) -> None:
    """So many jobs, spread over so many queues."""
    with opened(store) as ledger:
        for start in range(0, JOBS, REQUEST):
            numbers = range(start, start + REQUEST)
            ledger.enqueue(
                [NewJob(f"job-{n}", "text", queue=f"q{n % queues}") for n in numbers], now_ms=1_000 + start
            )


def fill_ahead(kind: str, store: str) -> None:
    """A million jobs ahead in order, in a queue that is paused, which claims have passed over."""
    statement = PAUSED.format(numbers=NUMBERS[kind].format(ahead=AHEAD))
    if kind == "SQLite":
        with closing(sqlite3.connect(store)) as connection:
            connection.execute(statement)
            connection.commit()
    else:
        with psycopg.connect(store, autocommit=True) as server:
            server.execute(statement.encode())
    with opened(store) as ledger:
        ledger.pause("mail")
        started = time.perf_counter()
        assert len(ledger.claim(CLAIM, now_ms=AT_MS)) == CLAIM.limit
        print(
            f"  the claim that passed over {AHEAD:,} jobs took {time.perf_counter() - started:.1f} s",
            flush=True,
        )
    if kind == "PostgreSQL":
        vacuum(store)


def vacuum(store: str) -> None:
    """As autovacuum does later, in the middle of the measure."""
    with psycopg.connect(store, autocommit=True) as server:
        server.execute(b"VACUUM ANALYZE fencepost_jobs")


def compare(
    plain: str, other: str, verbs: dict[str, Callable[[Ledger], object]]
) -> dict[str, tuple[float, float]]:
    """The median of each verb in both ledgers, in milliseconds."""
    took_ms: dict[tuple[str, str], list[float]] = {
        (verb, store): [] for verb in verbs for store in (plain, other)
    }
    with opened(plain) as first, opened(other) as second:
        ledgers = {plain: first, other: second}
        for round_ in range(ROUNDS + 5):
            for verb, call in verbs.items():
                for store in random.sample([plain, other], 2):
                    started = time.perf_counter()
                    call(ledgers[store])
                    if round_ >= 5:  # the first rounds warm the caches
                        took_ms[verb, store].append((time.perf_counter() - started) * 1_000)
        assert first.counts()["running"] == second.counts()["running"] > 0
    return {
        verb: (statistics.median(took_ms[verb, plain]), statistics.median(took_ms[verb, other]))
        for verb in verbs
    }


def bench(kind: str, new_store: NewStore) -> list[Line]:
    """Both comparisons."""
    one, many, none, ahead = (new_store() for _ in range(4))
    fill(one, 1)
    fill(many, QUEUES)
    lines = [
        Line(
            f"{kind}: {verb}, 20,000 jobs in 10,000 queues",
            many_ms / one_ms,
            2.0,
            at_most=True,
            detail=f"{many_ms:.3f} ms, {one_ms:.3f} ms in one queue",
        )
        for verb, (one_ms, many_ms) in compare(one, many, VERBS).items()
    ]
    fill(none, 1)
    fill(ahead, 1)
    with opened(none) as ledger:
        ledger.claim(CLAIM, now_ms=AT_MS)
    fill_ahead(kind, ahead)
    for verb, (none_ms, ahead_ms) in compare(none, ahead, {"claim 10": VERBS["claim 10"]}).items():
        detail = f"{ahead_ms:.3f} ms, {none_ms:.3f} ms without them"
        lines.append(
            Line(
                f"{kind}: {verb}, 1,000,000 paused ahead",
                ahead_ms / none_ms,
                1.5,
                at_most=True,
                detail=detail,
            )
        )
    return lines


@contextmanager
def sqlite_stores() -> Iterator[NewStore]:
    """Files in a folder of this disk."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        numbers = iter(range(100))
        yield lambda: str(Path(folder) / f"jobs-{next(numbers)}.db")


@contextmanager
def postgres_stores() -> Iterator[NewStore]:
    """Databases of one server; they go with it."""
    with server_url() as server, ExitStack() as databases:
        yield lambda: databases.enter_context(database(server))


KINDS: Final = {"sqlite": ("SQLite", sqlite_stores), "postgres": ("PostgreSQL", postgres_stores)}


def main() -> None:
    """Run it on the kinds that are named, or on both, and print the table."""
    lines: list[Line] = []
    for name in sys.argv[1:] or KINDS:
        kind, stores = KINDS[name]
        print(f"{kind} …", flush=True)
        with stores() as new_store:
            lines += bench(kind, new_store)
    print("\nMany queues (bars are the | in the middle)")
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
