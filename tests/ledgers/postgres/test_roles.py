"""The roles of docs/how-to/postgresql.md: each can do its work, lacks what it must not do, and needs what it has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from fencepost.core import (
    ClaimRequest,
    Ledger,
    LedgerFailed,
    NewJob,
    Receipt,
    Schedule,
    Settlement,
    Stamps,
    open_ledger,
)
from fencepost.core.ledgers.open import open_inspection
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.ledgers.postgres.upgrade import upgrade

from tests.docs.pages import ROOT, blocks
from tests.programs import document, fencepost

PAGE = ROOT / "docs" / "how-to" / "postgresql.md"
NAMES = ("reader", "enqueuer", "worker", "operator")
DENIED = "permission denied.*docs/how-to/postgresql.md"

Sql = Callable[..., list[tuple[Any, ...]]]
Work = Callable[[Ledger, Ledger, str], None]


def block(file: str) -> str:
    """What the page says is to be run, under that name."""
    (text,) = [block.text for block in blocks(PAGE.read_text("utf-8")) if block.file == file]
    return text


def as_user(url: str, user: str) -> str:
    """The URL for a user whose password is the name."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{user}@{parts.netloc.rpartition('@')[2]}").geturl()


@dataclass
class Roles:
    """The page's roles in the test's schema, each with a user who is a member of it."""

    prefix: str
    url: str
    grants: str

    def role(self, name: str) -> str:
        return f"{self.prefix}_{name}"

    def user_url(self, name: str) -> str:
        return as_user(self.url, f"{self.prefix}_{name}_user")


@contextmanager
def created(url: str, schema: str) -> Iterator[Roles]:
    prefix = f"roles_{schema}"
    own = re.compile(rf"\bfencepost_({'|'.join(NAMES)})\b")
    make = own.sub(rf"{prefix}_\1", block("roles.sql"))
    grants = own.sub(rf"{prefix}_\1", block("grants.sql")).replace("public", schema)
    roles = Roles(prefix, url, grants)
    with psycopg.connect(parse_address(url).conninfo, autocommit=True) as admin:
        admin.execute(make.encode())
        try:
            admin.execute(grants.encode())
            for name in NAMES:
                user = f"{prefix}_{name}_user"
                admin.execute(
                    f"CREATE ROLE {user} LOGIN PASSWORD '{user}' IN ROLE {roles.role(name)}".encode()
                )
            yield roles
        finally:
            for name in NAMES:
                for each in (f"{prefix}_{name}_user", roles.role(name)):
                    if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", (each,)).fetchall():
                        admin.execute(f"DROP OWNED BY {each}".encode())
                        admin.execute(f"DROP ROLE {each}".encode())


@pytest.fixture
def roles(url: str, ledger: Ledger) -> Iterator[Roles]:
    with created(url, parse_address(url).schema) as roles:
        yield roles


@pytest.fixture
def as_role(roles: Roles) -> Iterator[Callable[[str], Ledger]]:
    """The ledger as a member of a role has it."""
    opened: list[Ledger] = []

    def as_role(name: str) -> Ledger:
        opened.append(open_ledger(roles.user_url(name)))
        return opened[-1]

    yield as_role
    for each in opened:
        each.close()


def receipt(id: str) -> Receipt:
    return Receipt(id, "0" * 64, {"n": 1})


# -- the work of each, over a ledger that the owner has open, too; ids begin with ``n`` --


def read(own: Ledger, owner: Ledger, n: str) -> None:
    owner.enqueue([NewJob(f"{n}a", "text")])
    job = own.get_job(f"{n}a")
    assert job is not None
    assert own.counts()["queued"]
    assert own.jobs().jobs
    assert own.queue_counts(since_ms=0)
    assert own.next_due_ms() is not None
    assert own.read_inputs([f"{n}a"])[f"{n}a"].text == "text"
    assert own.receipts([f"{n}a"]) == {}
    own.latest_deaths()
    own.audit()
    own.paused()
    own.schedules()
    own.soonest()
    own.sealed_for()
    own.copying_from()
    own.export_rows()
    own.wait(0)


def look_with_the_doctor(url: str) -> None:
    with open_inspection(url) as inspection:
        list(inspection.findings())
        ids = [entry.id for entry in inspection.entries()]
        assert list(inspection.contents(ids))
        inspection.paused()
        inspection.closing()


def enqueue(own: Ledger, owner: Ledger, n: str) -> None:
    old = [NewJob(f"{n}old", "text"), NewJob(f"{n}purged", "text"), NewJob(f"{n}dead", "text")]
    owner.enqueue(old)
    for dead in ("purged", "dead"):
        owner.cancel(f"{n}{dead}")
    owner.purge(f"{n}purged")
    many = [NewJob(f"{n}new-{i}", "text", run_at_ms=i) for i in range(3)]
    alike = [NewJob(f"{n}alike-{i}", "text") for i in range(20)]
    answers = own.enqueue([*old, *many, *alike])
    assert [answer.created for answer in answers] == [False, True, False] + [True] * 23
    again = owner.get_job(f"{n}purged")
    assert again is not None
    assert again.version == 2


def work(own: Ledger, owner: Ledger, n: str) -> None:
    """All that a worker does to jobs and schedules; at logical instants, whatever the other runs have left."""
    queue = f"{n}q"

    def add(*names: str, **options: Any) -> None:
        owner.enqueue([NewJob(f"{n}{name}", "text", queue=queue, **options) for name in names], now_ms=0)

    def claim(now_ms: int) -> list[tuple[str, int]]:
        jobs = own.claim(
            ClaimRequest(claimant="me", lease_ms=10, max_attempts=2, limit=99, queues=[queue]), now_ms=now_ms
        )
        return [(job.id, job.version) for job in jobs]

    add("done", "late", "released", "held", "retried", "failed", "lapsed", "started")
    add("expired", expires_at_ms=5)
    add("delayed", run_at_ms=5)
    taken = dict(claim(1))
    assert len(taken) == 9
    own.read_inputs(taken)
    own.receipts(taken)
    assert own.heartbeat(f"{n}late", 1, extend_ms=12, now_ms=2)
    assert own.settle([Settlement(f"{n}done", 1, receipt(f"{n}done"))], now_ms=2)[0].completed
    own.publish(receipt(f"{n}late"))
    assert own.complete(f"{n}late", 1, now_ms=2)
    assert own.release(f"{n}released", 1, now_ms=2)
    assert own.hold(f"{n}held", 1, error="who knows", now_ms=2)
    assert own.retry(f"{n}retried", 1, run_at_ms=None, error="no", max_attempts=1, now_ms=2)
    assert own.fail(f"{n}failed", 1, error="no", now_ms=2)
    assert own.begin(f"{n}started", 1, now_ms=2)
    assert sorted(id.removeprefix(n) for id, _ in claim(11)) == ["delayed", "lapsed", "released"]
    add("dead", stamps=Stamps(dead_letter_retention_s=0))
    owner.cancel(f"{n}dead", now_ms=30)
    add("old", expires_at_ms=35)
    swept = own.sweep_expired(queue=queue, now_ms=40)
    assert (swept.expired, swept.purged) == (1, 1)
    pass_over(own, owner, n)
    owner.register_schedule(Schedule(n, "@every 1s", "text", queue=queue), now_ms=0)
    assert [fire.created for fire in own.tick(now_ms=1_000)] == [True]
    owner.unregister_schedule(n)
    own.next_due_ms(queues=[queue])
    own.paused()


def pass_over(own: Ledger, owner: Ledger, n: str) -> None:
    """A claim of all queues takes a paused job out of its index, and returns it once its queue is resumed."""
    assert isinstance(owner, PostgresLedger)
    queue, effect = f"{n}paused", f"{n}effect"
    request = ClaimRequest(claimant="me", lease_ms=10, max_attempts=2, effects=[effect])
    owner.enqueue([NewJob(f"{n}passed", "text", queue=queue, effect=effect)], now_ms=0)
    owner.pause(queue)
    assert own.claim(request, now_ms=1) == []
    engine = owner._engine
    owner._engine = replace(engine, give_back=lambda transaction, queue: False)
    owner.resume(queue)
    owner._engine = engine
    assert [job.id for job in own.claim(request, now_ms=2)] == [f"{n}passed"]


def operate(own: Ledger, owner: Ledger, n: str) -> None:
    for name in ("cancelled", "adopted", "retried", "failed"):
        owner.enqueue([NewJob(f"{n}{name}", "text", queue=f"{n}q")], now_ms=0)
    assert own.cancel(f"{n}cancelled", now_ms=1)
    assert own.redrive(f"{n}cancelled", now_ms=2)
    assert own.cancel(f"{n}cancelled", now_ms=3)
    assert own.purge(f"{n}cancelled", now_ms=4)
    for job in owner.claim(
        ClaimRequest(claimant="me", lease_ms=9, max_attempts=9, limit=9, queues=[f"{n}q"]), now_ms=5
    ):
        owner.hold(job.id, job.version, error="who knows", now_ms=6)
    assert own.resolve(f"{n}adopted", decision="applied", outcome={"n": 1}, now_ms=7)
    assert own.resolve(f"{n}retried", decision="retry", now_ms=7)
    assert own.resolve(f"{n}failed", decision="fail", now_ms=7)
    assert own.pause(f"{n}q")
    assert own.resume(f"{n}q")
    for every in ("@every 1h", "@every 2h"):
        own.register_schedule(Schedule(n, every, "text"))
    assert own.unregister_schedule(n)
    actions = [entry.action for entry in own.audit() if entry.id.startswith(n)]
    assert actions == ["cancel", "redrive", "cancel", "purge", *["resolve"] * 3, "pause", "resume"]


WORK: dict[str, Work] = {"reader": read, "enqueuer": enqueue, "worker": work, "operator": operate}


@pytest.mark.parametrize("name", NAMES)
def test_each_role_can_do_its_work(as_role: Callable[[str], Ledger], ledger: Ledger, name: str) -> None:
    WORK[name](as_role(name), ledger, "n-")


def test_an_operator_can_do_what_the_others_can(
    roles: Roles, as_role: Callable[[str], Ledger], ledger: Ledger
) -> None:
    operator = as_role("operator")
    for number, other in enumerate(("reader", "enqueuer", "worker")):
        WORK[other](operator, ledger, f"n-{number}-")
    look_with_the_doctor(roles.user_url("operator"))


def granted(sql: Sql, role: str) -> list[str]:
    """What the role may do to tables, views, sequences and columns, each as GRANT and REVOKE say it."""
    return [
        what
        for (what,) in sql(
            """
            SELECT format('%%s ON %%s %%I', acl.privilege_type,
                CASE class.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, class.relname)
            FROM pg_class AS class CROSS JOIN LATERAL aclexplode(class.relacl) AS acl
            WHERE acl.grantee = %s::regrole AND class.relnamespace = current_schema()::regnamespace
            UNION ALL
            SELECT format('%%s (%%I) ON %%I', acl.privilege_type, field.attname, class.relname)
            FROM pg_attribute AS field JOIN pg_class AS class ON class.oid = field.attrelid
            CROSS JOIN LATERAL aclexplode(field.attacl) AS acl
            WHERE acl.grantee = %s::regrole AND class.relnamespace = current_schema()::regnamespace
            ORDER BY 1
            """,
            role,
            role,
        )
    ]


@pytest.mark.parametrize("name", NAMES)
def test_no_role_has_a_right_that_its_work_does_not_need(
    roles: Roles, as_role: Callable[[str], Ledger], ledger: Ledger, sql: Sql, name: str
) -> None:
    """Without any one of its rights the work of the role is refused somewhere."""
    role, own = roles.role(name), as_role(name)
    rights = granted(sql, role)
    assert len(rights) >= 5
    spare = []
    for number, right in enumerate(rights):
        sql(f"REVOKE {right} FROM {role}")
        try:
            WORK[name](own, ledger, f"n{number}-")
            if name == "reader":
                look_with_the_doctor(roles.user_url(name))
        except LedgerFailed as error:
            if not re.search(DENIED, str(error)):
                raise
        else:
            spare.append(right)
        sql(f"GRANT {right} TO {role}")
    assert spare == []


# -- what they must not do --


def refuse(action: Callable[[], object]) -> None:
    with pytest.raises(LedgerFailed, match=DENIED):
        action()


def test_a_refusal_is_said_in_a_line_without_sql(as_role: Callable[[str], Ledger], ledger: Ledger) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    with pytest.raises(LedgerFailed, match=DENIED) as caught:
        claim_one(as_role("enqueuer"))
    assert "SELECT" not in str(caught.value)
    assert len(str(caught.value)) < 400


def claim_one(ledger: Ledger) -> object:
    return ledger.claim(ClaimRequest(claimant="me", lease_ms=1_000, max_attempts=3), now_ms=10)


def test_a_reader_cannot_write(as_role: Callable[[str], Ledger], ledger: Ledger) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    before = ledger.get_job("a")
    reader = as_role("reader")
    refuse(lambda: reader.enqueue([NewJob("b", "text")]))
    refuse(lambda: claim_one(reader))
    refuse(lambda: reader.publish(receipt("a")))
    refuse(lambda: reader.cancel("a"))
    refuse(lambda: reader.pause("default"))
    refuse(lambda: reader.sweep_expired())
    refuse(lambda: reader.register_schedule(Schedule("s", "@every 1h", "text")))
    assert ledger.get_job("a") == before
    assert ledger.counts()["queued"] == 1


def test_an_enqueuer_cannot_claim_nor_finish_nor_see_receipts(
    as_role: Callable[[str], Ledger], ledger: Ledger
) -> None:
    ledger.enqueue([NewJob("a", "text"), NewJob("b", "text")], now_ms=0)
    enqueuer = as_role("enqueuer")
    refuse(lambda: claim_one(enqueuer))
    claim_one(ledger)
    refuse(lambda: enqueuer.complete("a", 1, now_ms=20))
    refuse(lambda: enqueuer.settle([Settlement("a", 1, receipt("a"))], now_ms=20))
    refuse(lambda: enqueuer.fail("a", 1, error="no", now_ms=20))
    refuse(lambda: enqueuer.cancel("b"))
    refuse(lambda: enqueuer.receipts(["a"]))
    assert ledger.counts() == {"queued": 1, "running": 1, "completed": 0, "dead": 0, "held": 0}


def test_a_worker_cannot_act_as_an_operator(as_role: Callable[[str], Ledger], ledger: Ledger) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    worker = as_role("worker")
    refuse(lambda: worker.cancel("a"))
    refuse(lambda: worker.pause("default"))
    refuse(lambda: worker.register_schedule(Schedule("s", "@every 1h", "text")))
    refuse(lambda: worker.audit())
    job = ledger.get_job("a")
    assert job is not None
    assert (job.state, job.version) == ("queued", 0)
    assert ledger.audit() == []


REWRITING = (
    "UPDATE fencepost_inputs SET text = ''",
    "DELETE FROM fencepost_inputs",
    "TRUNCATE fencepost_inputs",
    "UPDATE fencepost_effects SET receipt = ''",
    "DELETE FROM fencepost_effects",
    "TRUNCATE fencepost_effects",
    "INSERT INTO fencepost_effects VALUES ('a', '{}') ON CONFLICT (id) DO UPDATE SET receipt = '{}'",
    "UPDATE fencepost_audit SET actor = 'nobody'",
    "DELETE FROM fencepost_audit",
    "UPDATE fencepost_meta SET sealed_for = NULL",
    "UPDATE fencepost_meta SET copying_from = NULL",
    "UPDATE fencepost_meta SET schema_version = 1",
    "ALTER TABLE fencepost_effects DISABLE TRIGGER ALL",
    "SET session_replication_role = replica",
    "CREATE TABLE mine (n integer)",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_role_can_rewrite_what_is_written_once_nor_change_the_schema(
    roles: Roles, ledger: Ledger, name: str
) -> None:
    ledger.enqueue([NewJob("a", "text")], now_ms=0)
    ledger.publish(receipt("a"))
    address = parse_address(roles.user_url(name))
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path = {address.schema}".encode())
        for statement in REWRITING:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_copying_a_ledger_is_its_owners_business(as_role: Callable[[str], Ledger], ledger: Ledger) -> None:
    refuse(lambda: as_role("operator").seal("elsewhere.db"))
    refuse(lambda: as_role("operator").begin_copy("elsewhere.db"))
    assert (ledger.sealed_for(), ledger.copying_from()) == (None, None)
    ledger.begin_copy("elsewhere.db")
    refuse(lambda: as_role("operator").end_copy("elsewhere.db"))
    assert ledger.copying_from() == "elsewhere.db"


# -- the schema's owner --


@pytest.fixture
def owner_url(postgres_url: str, url: str) -> Iterator[str]:
    """A ledger in a schema of its own, whose owner is no superuser and may make no schema."""
    name = f"owner_{parse_address(url).schema}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'".encode())
        admin.execute(f"CREATE SCHEMA {name} AUTHORIZATION {name}".encode())
        try:
            yield as_user(f"{url.partition('?')[0]}?fencepost_schema={name}", name)
        finally:
            admin.execute(f"DROP OWNED BY {name}".encode())
            admin.execute(f"DROP ROLE {name}".encode())


def test_the_owner_of_a_schema_needs_no_other_right_to_make_and_keep_the_ledger(owner_url: str) -> None:
    made = upgrade(owner_url)
    assert made.before == 0
    with open_ledger(owner_url) as owner:
        operate(owner, owner, "n-")
        owner.seal("elsewhere.db")
    assert upgrade(owner_url).before == made.after


def test_who_may_make_nothing_is_told_so_and_makes_nothing(roles: Roles, sql: Sql) -> None:
    empty = f"empty_{roles.prefix}"
    sql(f"CREATE SCHEMA {empty}")
    try:
        sql(f"GRANT USAGE ON SCHEMA {empty} TO {roles.role('worker')}")
        schema = parse_address(roles.url).schema
        url = roles.user_url("worker").replace(f"fencepost_schema={schema}", f"fencepost_schema={empty}")
        with open_ledger(url) as ledger:
            refuse(lambda: ledger.enqueue([NewJob("a", "text")]))
        assert sql("SELECT FROM pg_class WHERE relnamespace = %s::regnamespace", empty) == []
    finally:
        sql(f"DROP SCHEMA {empty} CASCADE")


def test_a_doctor_that_may_not_look_into_other_sessions_says_so(
    roles: Roles, ledger: Ledger, sql: Sql
) -> None:
    def checks() -> dict[str, tuple[str, ...]]:
        with open_inspection(roles.user_url("reader")) as inspection:
            return {finding.check: finding.ids for finding in inspection.findings()}

    me = sql("SELECT current_user::text")[0][0]
    assert "hidden-sessions" not in checks()
    sql(f"REVOKE pg_read_all_stats FROM {roles.role('reader')}")
    assert me in checks()["hidden-sessions"]


# -- the commands --


def test_the_commands_work_with_no_more_than_their_roles(roles: Roles, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.json"
    jobs.write_text('[{"id": "a", "text": "one two"}]')
    printed = document("enqueue", "--store", roles.user_url("enqueuer"), "--input", jobs)
    assert printed["enqueued_or_already_present"] == 1
    (event,) = document("worker", "--store", roles.user_url("worker"))["events"]
    assert (event["id"], event["state"]) == ("a", "completed")
    ended = fencepost("worker", "--store", roles.user_url("worker"), "--follow", "--idle-exit", "0")
    assert ended.returncode == 0
    assert b"permission" not in ended.stderr
    reader = roles.user_url("reader")
    assert document("status", "--store", reader)["effects"][0]["words"] == 2
    document("top", "--store", reader)
    found = json.loads(fencepost("doctor", "--store", reader).stdout)
    # What the tests before have left may not have been vacuumed yet.
    assert {finding["check"] for finding in found["findings"]} <= {"not-durable", "bloat"}
    assert document("queues", "pause", "default", "--store", roles.user_url("operator"), "--reason", "x")
