"""The plans of what workers ask all day: walks along indexes, whatever the tables hold and is known of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fencepost.core import ClaimRequest, Ledger, NewJob
from fencepost.core.ledgers import postgres
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.ledgers.postgres.arrays import (
    adapt,
    bytea_array,
    int_array,
    text_array,
)
from fencepost.core.ledgers.postgres.database import statements
from fencepost.core.testing import Store

NAMES = [f"job-{n}" for n in range(500)]
BOUNDS: dict[str, Any] = {"now_ms": 5_000, "max_attempts": 3}
ONE = {"queues": "{default}", "effects": "{count}"}
ALL = {"queues": None, "effects": "{count}"}
ANY_EFFECT = {"queues": "{default}", "effects": None}
ANYTHING = {"queues": None, "effects": None}
CLAIMING = BOUNDS | {"limit": 500}
PICKING = BOUNDS | {"shares": "{500}", "lease_ms": 1_000, "claimant": "me", "any_paused": True}
SHARES = BOUNDS | {"limit": 500, "any_paused": True}
PASSING = {"effects": "{count}", "limit": 500, "window": 1_000, "queues": "{default}"}

RUNS: dict[str, dict[str, dict[str, Any]]] = {
    "lanes": {
        "": ONE | CLAIMING,
        "_all": ALL | CLAIMING,
        " of any effect": ANY_EFFECT | CLAIMING,
        "_all of any effect": ANYTHING | CLAIMING,
    },
    "promote": {"": ONE | BOUNDS | {"limit": 10_000}},
    "promote_all": {"_all": ALL | BOUNDS | {"limit": 10_000}},
    "reapable": {"": ONE | BOUNDS | {"limit": 1_000}},
    "reapable_all": {"_all": ALL | BOUNDS | {"limit": 1_000}},
    "shares": {"": {"queues": "{default,mail}", "effects": "{count,count}"} | SHARES},
    "shares_all": {"_all": {"queues": None, "effects": "{count,mail}"} | SHARES},
    "pick": {"": ONE | PICKING, "_all": ALL | PICKING},
    "paused_ahead": {"_all": PASSING},
    "pass_over": {"_all": PASSING},
    "give_back": {"": {"queue": "default", "limit": 1_000}},
    "forget_pause": {"": {"queue": "default"}},
    "purgeable": {"": {"queue": "default", "now_ms": 5_000, "limit": 1_000}},
    "purgeable_all": {"_all": {"now_ms": 5_000, "limit": 1_000}},
    "expired": {"": {"queues": "{default}", "now_ms": 5_000, "limit": 1_000}},
    "expired_all": {"_all": {"queues": None, "now_ms": 5_000, "limit": 1_000}},
    "next_due": {"": ONE, "_all": ALL},
}
"""What a claim, a sweep and an idle worker run: of named queues, and of all (_all)."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "settle": {
        "ids": text_array(NAMES),
        "versions": int_array([1] * 500),
        "receipts": bytea_array([b"{}"] * 500),
        "count": 500,
        "now_ms": 5_000,
    },
    "complete": {"ids": text_array(NAMES), "versions": int_array([1] * 500), "now_ms": 5_000},
    "inputs": {"ids": text_array(NAMES)},
    "receipts": {"ids": text_array(NAMES)},
    "lock_job": {"id": "job-1"},
    "reclaim": {"ids": text_array(NAMES)},
    "bury": {"ids": text_array(NAMES), "error": "x", "now_ms": 5_000, "nothing_done": False},
}
"""What else a claim, a settlement and a heartbeat run."""

STEPS = {"ready", "waiting", "passed_over", "leases", "expiry", "attempts", "exhausted"}
INDEXES: dict[str, set[str]] = {
    "lanes": {"waiting", "leases", "expiry", "attempts", "exhausted"},
    "lanes of any effect": STEPS,
    "promote": {"waiting", "pkey"},
    "reapable": {"expiry", "leases", "attempts", "exhausted", "pkey"},
    "shares": {"ready"},
    "pick": {"ready", "pkey"},
    "paused_ahead": {"ready", "waiting"},
    "pass_over": {"ready", "waiting", "pkey"},
    "give_back": {"passed_over", "pkey"},
    "forget_pause": {"passed_over"},
    "purgeable": {"retention"},
    "expired": STEPS,
    "next_due": {"ready", "waiting", "leases", "expiry", "passed_over"},
    "settle": {"pkey"},
    "complete": {"pkey"},
    "inputs": {"inputs_pkey"},
    "receipts": {"effects_pkey"},
    "lock_job": {"pkey", "dead_pkey"},
    "reclaim": {"pkey"},
    "bury": {"pkey"},
}
"""The index of each walk; those of ``STEPS`` and the retention come in two forms."""

AHEAD = {"lanes_all": {"ready_all"}}
"""What is walked along only while a queue is paused."""

FORMS = STEPS - {"passed_over"} | {"retention"}

TINY = {"fencepost_meta", "fencepost_paused"}


def fill(sql: Callable[..., Any], *, completed: int, delayed: int, running: int, queued: int) -> None:
    """Rows of each kind, as a busy ledger has them."""
    for kind, count, columns, values in (
        ("done", completed, "state, version", "'completed', 1"),
        ("late", delayed, "run_at_ms, waiting, version", "9000000 + n, 1, 0"),
        ("busy", running, "state, lease_until_ms, attempts, version", "'running', 9000000 + n, 1, 1"),
        ("next", queued, "version", "0"),
    ):
        sql(
            f"INSERT INTO fencepost_jobs (key, id, queue, effect, priority, enqueued_at_ms, {columns}) "
            f"SELECT nextval('fencepost_requests'), '{kind}-' || n, 'default', 'count', 0, n, {values} "
            f"FROM generate_series(1, {count}) AS n"
        )


@pytest.fixture(
    params=[
        "empty and unknown",
        "filled and unknown",
        "filled and analysed",
        "analysed when empty",
        "emptied and vacuumed",
    ]
)
def filled(request: pytest.FixtureRequest, ledger: Ledger, sql: Callable[..., Any]) -> Iterator[None]:
    sql("ALTER TABLE fencepost_jobs SET (autovacuum_enabled = off)")
    # On an empty table both forms of an index cost alike, and what earlier tests left of either decides.
    sql(
        "INSERT INTO fencepost_dead (key, id, version, attempts, queue, effect, priority, died_at_ms, "
        "dead_letter_retention_ms) SELECT -n, 'dead-' || n, 1, 1, 'q' || n % 500, 'count', 0, n, n "
        "FROM generate_series(1, 5000) AS n"
    )
    sql("ANALYZE fencepost_dead")
    if request.param == "analysed when empty":
        sql("ANALYZE fencepost_jobs")
    if request.param != "empty and unknown":
        fill(sql, completed=20_000, delayed=5_000, running=3_000, queued=1_000)
    if request.param == "filled and analysed":
        sql("ANALYZE fencepost_jobs")
    if request.param == "emptied and vacuumed":
        sql("UPDATE fencepost_jobs SET attempts = 1 WHERE state = 'queued'")
        sql("DELETE FROM fencepost_jobs")
        sql("VACUUM ANALYZE fencepost_jobs")
    yield
    sql("ALTER TABLE fencepost_jobs RESET (autovacuum_enabled)")


def test_no_statement_of_a_worker_reads_a_table_from_end_to_end(filled: None, url: str) -> None:
    address = parse_address(url)
    named = statements(address.schema, address.channel)
    with psycopg.connect(address.conninfo) as connection:
        plans = Plans(connection)
        connection.execute(named["opening"])
        for name, parameters in PARAMETERS.items():
            check_plan(name, "", plans.of(named[name], parameters))
        for name, runs in RUNS.items():
            for form, parameters in runs.items():
                check_plan(name.removesuffix("_all"), form, plans.of(named[name], parameters))
        connection.rollback()


class Plans:
    """The plans of what is run, those inside of functions included, as the server's auto_explain tells them."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._told: list[str] = []
        connection.execute("LOAD 'auto_explain'")
        for setting in ("log_min_duration = 0", "log_nested_statements = on", "log_level = notice"):
            connection.execute(f"SET LOCAL auto_explain.{setting}".encode())
        connection.add_notice_handler(lambda notice: self._told.append(notice.message_primary or ""))

    def of(self, statement: bytes, parameters: dict[str, Any]) -> str:
        """Run it, and undo what it did."""
        self._told.clear()
        cursor = self._connection.cursor()
        adapt(cursor.adapters)
        with self._connection.transaction(force_rollback=True):
            cursor.execute(statement, parameters, prepare=False)
            cursor.execute("SELECT")  # a statement's end is told when the next one comes
            return "\n".join(self._told)


def check_plan(name: str, form: str, plan: str) -> None:
    """Each table is walked through along the indexes that are named for the statement, and no other."""
    assert set(re.findall(r"Seq Scan on (\w+)", plan)) <= TINY, f"{name}: {plan}"
    assert "Hash Join" not in plan, f"{name}: {plan}"
    assert "Merge Join" not in plan, f"{name}: {plan}"
    suffix, any_effect = ("_all" if form.startswith("_all") else ""), form.removeprefix("_all")
    used = {short(index) for index in re.findall(r"using fencepost_(\w+)", plan)}
    asked = INDEXES[name + any_effect]
    wanted = {index + suffix if index in FORMS else index for index in asked}
    if asked >= STEPS and suffix:
        wanted = {f"{index}{suffix}" for index in STEPS}
    assert wanted <= used, f"{name}{form}: {plan}"
    assert used <= wanted | {
        "effects_pkey",
        "dead_pkey",
        "paused_pkey",
        "resuming",
        *AHEAD.get(name + suffix, ()),
    }, f"{name}{form}: {plan}"


def short(index: str) -> str:
    """The name of an index of jobs or of the dead, without that of its table."""
    return "pkey" if index == "jobs_pkey" else index.replace("dead_retention", "retention")


def test_every_statement_is_used_and_every_one_that_is_used_is_there() -> None:
    """A name that no module speaks of is a leftover; one that the file lacks fails only when it is needed."""
    own = Path(postgres.__file__).parent
    modules = "".join(
        file.read_text("utf-8") for room in (own, own.parent / "sql") for file in room.glob("*.py")
    )
    unused = [name for name in statements("public", "x") if f'"{name.removesuffix("_all")}"' not in modules]
    assert unused == []


def test_a_claim_in_a_deep_ledger_takes_what_is_ready(
    ledger: Ledger, store: Store, sql: Callable[..., Any]
) -> None:
    fill(sql, completed=20_000, delayed=5_000, running=3_000, queued=0)
    ledger.enqueue([NewJob(f"job-{n}", "x") for n in range(5)], now_ms=10)
    (job, *_) = ledger.claim(ClaimRequest(claimant="me", lease_ms=10, max_attempts=3, limit=2), now_ms=20)
    assert job.id == "job-0"
    assert ledger.next_due_ms() == 0
