"""What the PostgreSQL ledger is measured beside: the bare statements, pgqueuer and procrastinate.

Each peer has its own worker, at the settings that were the fastest here: pgqueuer over asyncpg and uvloop in batches of
500 (and of 100, its own benchmark's neighbourhood); procrastinate over psycopg, its only driver, ten jobs at a time. A
job's work is to count words; neither writes a receipt. pgqueuer deletes a job that is done and writes a row to its
log; procrastinate keeps the row. Their time ends when the last job's work does, though its completion is yet to come.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.databases import JOBS, REQUEST, count, database, fill, texts

RAW_CLAIM = """
    UPDATE fencepost_jobs SET state = 'running', version = version + 1, attempts = attempts + 1,
        lease_until_ms = %(at_ms)s::bigint + 30000, claimant = 'raw', claimed_at_ms = %(at_ms)s::bigint,
        first_claimed_at_ms = %(at_ms)s::bigint
    WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM fencepost_jobs
        WHERE queue = 'default' AND effect = 'count' AND state = 'queued' AND waiting = 0
        ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, version
"""
RAW_INPUTS = "SELECT id, text FROM fencepost_inputs WHERE id = ANY(%s::text[])"
RAW_RECEIPTS = """
    INSERT INTO fencepost_effects (id, receipt)
    SELECT * FROM unnest(%s::text[], %s::bytea[]) ON CONFLICT (id) DO NOTHING
"""
RAW_COMPLETE = """
    UPDATE fencepost_jobs AS job SET state = 'completed', lease_until_ms = 0, completed_at_ms = %(at_ms)s
    FROM unnest(%(ids)s::text[], %(versions)s::bigint[]) AS held (id, version)
    WHERE job.id = held.id AND job.version = held.version AND job.lease_until_ms > %(at_ms)s
"""


def floor(batch: int, server: str, folder: Path) -> float:
    """Raw psycopg on the same tables: claim; read the texts; receipts and completions in one commit.

    Lists are array literals made by hand, which is five times cheaper than psycopg's lists; statements are prepared
    by psycopg, as they are after a few uses; nothing is checked, and nobody is woken.
    """
    with database(server) as url:
        fill(url, JOBS)
        done = 0
        with psycopg.connect(url, autocommit=True) as connection:
            started = time.perf_counter()
            while True:
                at_ms = time.time_ns() // 1_000_000
                claimed = connection.execute(RAW_CLAIM, {"at_ms": at_ms, "limit": batch}).fetchall()
                if not claimed:
                    break
                ids = "{" + ",".join([id for id, _ in claimed]) + "}"
                versions = dict(claimed)
                receipts = []
                names = []
                for id, text in connection.execute(RAW_INPUTS, (ids,), binary=True):
                    digest = hashlib.sha256(text).hexdigest()
                    receipt = {
                        "id": id,
                        "input_sha256": digest,
                        "bytes": len(text),
                        "words": len(text.split()),
                    }
                    names.append(id)
                    receipts.append('"\\\\x' + json.dumps(receipt).encode().hex() + '"')
                fences = {
                    "ids": "{" + ",".join(names) + "}",
                    "versions": "{" + ",".join([str(versions[id]) for id in names]) + "}",
                    "at_ms": at_ms,
                }
                with connection.transaction():
                    connection.execute(RAW_RECEIPTS, (fences["ids"], "{" + ",".join(receipts) + "}"))
                    done += connection.execute(RAW_COMPLETE, fences).rowcount
            elapsed_s = time.perf_counter() - started
            assert done == count(connection, "fencepost_effects") == JOBS
    return JOBS / elapsed_s


PEER_JOBS = {"pgqueuer": JOBS, "procrastinate": JOBS // 10}


async def pgqueuer_asyncpg(batch: int, url: str, server: str) -> float:
    """Its worker over asyncpg, the faster of its two drivers."""
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.models import Job
    from pgqueuer.types import QueueExecutionMode

    connection = await asyncpg.connect(url)
    try:
        worker = PgQueuer.from_asyncpg_connection(connection)
        return await drain_pgqueuer(batch, worker, server, Job, QueueExecutionMode.drain)
    finally:
        await connection.close()


async def drain_pgqueuer(batch: int, worker: Any, server: str, job_class: Any, drain: Any) -> float:
    jobs, done, ended = PEER_JOBS["pgqueuer"], 0, 0.0

    async def work(job: Any) -> None:
        nonlocal done, ended
        done += len(job.payload.split()) > 0
        ended = time.perf_counter()

    work.__annotations__["job"] = job_class
    worker.entrypoint("work")(work)
    queries = worker.qm.queries
    await queries.install()
    for start in range(0, jobs, REQUEST):
        some = texts(start, start + REQUEST)
        await queries.enqueue(["work"] * REQUEST, [text.encode() for _, text in some], [0] * REQUEST)
    started = time.perf_counter()
    await worker.qm.run(batch_size=batch, mode=drain)
    assert done == jobs
    return jobs / (ended - started)


def pgqueuer(batch: int, server: str, folder: Path) -> float:
    import uvloop

    with database(server) as url:
        return uvloop.run(pgqueuer_asyncpg(batch, url, server))


async def procrastinate_psycopg(concurrency: int, url: str, server: str) -> float:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
    jobs, done, ended = PEER_JOBS["procrastinate"], 0, 0.0

    @app.task(name="work")
    async def work(text: str) -> None:
        nonlocal done, ended
        done += len(text.split()) > 0
        ended = time.perf_counter()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, jobs, REQUEST):
            await work.batch_defer_async(*[{"text": text} for _, text in texts(start, start + REQUEST)])
        started = time.perf_counter()
        await app.run_worker_async(concurrency=concurrency, wait=False, install_signal_handlers=False)
    assert done == jobs
    return jobs / (ended - started)


def procrastinate(concurrency: int, server: str, folder: Path) -> float:
    """Its worker over psycopg, its one driver."""
    with database(server) as url:
        return asyncio.run(procrastinate_psycopg(concurrency, url, server))
