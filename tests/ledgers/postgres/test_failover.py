"""A primary dies, its standby is promoted, and workers whose URL names both go on there with all that was confirmed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from fencepost.core import Ledger, LedgerFailed, NewJob
from fencepost.core.ledgers.postgres import PostgresLedger

from tests.postgres_server import NOBODY, Server, _as_nobody, server
from tests.waiting import until
from tests.worker.doubles import Acting
from tests.worker.test_service import following


@contextmanager
def standby_of(primary: Server) -> Iterator[Server]:
    """A server that follows the primary, and without which the primary confirms no commit."""
    folder = Path(tempfile.mkdtemp(prefix="fencepost-pg-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        subprocess.run(
            [
                primary.programs / "pg_basebackup",
                *("--pgdata", folder / "data", "--host", primary.folder, "--username", "fencepost"),
                *("--write-recovery-conf", "--checkpoint=fast", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            **_as_nobody(),
        )
        # Once it is promoted it has no standby to wait for.
        standby = Server(folder, primary.programs, primary.settings | {"synchronous_standby_names": ""})
        standby.start()
        try:
            with psycopg.connect(primary.url, autocommit=True) as admin:
                admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                admin.execute("SELECT pg_reload_conf()")
                until(
                    lambda: admin.execute(
                        "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
                    ).fetchall()
                )
            yield standby
        finally:
            standby.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_workers_go_on_at_the_standby_that_was_promoted() -> None:
    names = [f"job-{n}" for n in range(400)]
    applied: Counter[str] = Counter()
    lock = threading.Lock()

    def effect(request: Any) -> dict[str, str]:
        with lock:
            applied[request.id] += 1
        time.sleep(0.002)
        return {"done": request.id}

    with server(durable=True) as primary, standby_of(primary) as standby:
        hosts = ",".join(quote(str(each.folder), safe="") for each in (primary, standby))
        url = f"postgresql://fencepost@{hosts}/postgres?target_session_attrs=read-write"
        with (
            PostgresLedger(url) as ledger,
            PostgresLedger(url) as other,
            PostgresLedger(standby.url) as replica,
        ):
            ledger.enqueue([NewJob(name, "x", effect="act") for name in names])
            with (
                following(ledger, Acting(effect), lease_ms=2_000, max_attempts=99) as first,
                following(other, Acting(effect), lease_ms=2_000, max_attempts=99) as second,
            ):
                until(lambda: len(applied) > 50)
                assert sum(replica.counts().values()) == len(names), "a standby can be looked at"
                primary.stop(signal.SIGQUIT)
                until(lambda: first.worker.outages and second.worker.outages)
                with psycopg.connect(standby.url, autocommit=True) as admin:
                    assert admin.execute("SELECT pg_promote()").fetchall() == [(True,)]
                until(lambda: replica.counts()["completed"] == len(names))
                ledger.enqueue([NewJob("after", "x", effect="act")])
                until(lambda: replica.counts()["completed"] == len(names) + 1)
            told = Counter(
                event.id for each in (first, second) for event in each.events if event.state == "completed"
            )
            assert told == Counter(dict.fromkeys([*names, "after"], 1)), "what was confirmed is there, once"
            assert len(replica.receipts(names)) == len(names)


def test_a_connection_to_a_server_that_became_read_only_is_not_used_again(
    ledger: Ledger, url: str, sql: Callable[..., Any]
) -> None:
    with PostgresLedger(url, max_connections=1) as demoted:
        demoted.counts()
        connection = demoted._database._pool.take()
        connection.execute("SET default_transaction_read_only = on")  # as a primary has it that was demoted
        demoted._database._pool.put(connection)
        with pytest.raises(LedgerFailed, match="standby"):
            demoted.enqueue([NewJob("a", "text")])
        assert demoted.enqueue([NewJob("a", "text")])[0].created
