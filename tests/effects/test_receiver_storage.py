"""Deliveries over a real database: the key, its answer and the service's own work are there together or not at all."""

import contextlib
import json
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import psycopg
import pytest
from fencepost.effects.receiver import (
    Delivery,
    Refused,
    create_table,
    forget,
    look_up,
    receive,
)

KEY = "fp1-abc"


class Service:
    """A service with a table of its own beside the receiver's, and a connection that its requests come over."""

    def __init__(self, connect, paramstyle, charges):
        self.connect = connect
        self.paramstyle = paramstyle
        with connect() as connection:
            create_table(connection)
        self.execute(charges)
        self.connection = connect().__enter__()

    def sql(self, statement):
        return statement if self.paramstyle == "qmark" else statement.replace("?", "%s")

    def execute(self, statement, *values):
        """The rows of one statement, over another connection."""
        with self.connect() as connection:
            cursor = connection.cursor()
            cursor.execute(self.sql(statement), values)
            rows = cursor.fetchall() if cursor.description else []
            connection.commit()
            return rows

    # -- work --

    def charge(self, connection, delivery):
        cursor = connection.cursor()
        cursor.execute(self.sql("INSERT INTO charges (body) VALUES (?) RETURNING number"), (delivery.body,))
        [(number,)] = cursor.fetchall()
        return {"number": number}

    def fail(self, connection, delivery):
        self.charge(connection, delivery)
        raise RuntimeError("the bank is closed")

    # -- what is tested --

    def receive(self, delivery, work=None, *, connection=None, **options):
        return receive(
            connection or self.connection,
            delivery,
            work or self.charge,
            paramstyle=self.paramstyle,
            **options,
        )

    def look_up(self, key=KEY):
        return look_up(self.connection, key, paramstyle=self.paramstyle)

    # -- what became of it --

    def charges(self):
        return [bytes(body) for (body,) in self.execute("SELECT body FROM charges ORDER BY number")]

    def stored(self, key=KEY):
        """The key's fence, whether it has a digest, and its answer."""
        statement = "SELECT fence, digest IS NOT NULL, answer FROM fencepost_received WHERE key = ?"
        rows = self.execute(statement, key)
        return rows[0] if rows else None


class SqliteService(Service):
    by_itself: ClassVar = {"isolation_level": None}
    patient: ClassVar = {"timeout": 60, "check_same_thread": False}
    impatient: ClassVar = {"timeout": 0}
    busy = (503, "busy")

    def in_transaction(self):
        return self.connection.in_transaction

    def __init__(self, path):
        def connect(**options):
            return contextlib.closing(sqlite3.connect(path, **options))

        super().__init__(
            connect, "qmark", "CREATE TABLE charges (number INTEGER PRIMARY KEY, body BLOB NOT NULL)"
        )


class PostgresService(Service):
    by_itself: ClassVar = {"autocommit": True}
    patient: ClassVar = {}
    impatient: ClassVar = {"options": "-c lock_timeout=1ms"}
    busy = (409, "in-progress")

    def in_transaction(self):
        return self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def __init__(self, url, schema):
        def connect(options="", **more):
            return psycopg.connect(url, options=f"-c search_path={schema} {options}", **more)

        columns = "number INTEGER GENERATED ALWAYS AS IDENTITY, body BYTEA NOT NULL"
        super().__init__(connect, "format", f"CREATE TABLE charges ({columns})")


@pytest.fixture(params=["sqlite", "postgres"])
def service(request, tmp_path):
    if request.param == "sqlite":
        service = SqliteService(tmp_path / "service.db")
        yield service
        service.connection.close()
        return
    url, schema = request.getfixturevalue("postgres_url"), f"receiver_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {schema}")
        try:
            service = PostgresService(url, schema)
            yield service
            service.connection.close()
        finally:
            admin.execute(f"DROP SCHEMA {schema} CASCADE")


def delivery(body=b"hello", fence=1, key=KEY):
    return Delivery(key=key, fence=fence, body=body)


def kind(answer):
    return json.loads(answer.body)["type"].rpartition(":")[2]


def test_a_new_key_is_worked_on_and_kept_with_its_answer(service):
    answer = service.receive(delivery())
    assert (answer.status, json.loads(answer.body)) == (201, {"number": 1})
    assert service.charges() == [b"hello"]
    assert service.stored() == (1, 1, '{"number":1}')


def test_a_known_key_is_answered_with_the_very_same_bytes(service):
    first = service.receive(delivery())
    again = service.receive(delivery(), service.fail)
    assert (again.status, again.body) == (200, first.body)
    assert ("Idempotent-Replayed", "true") in again.headers
    assert service.charges() == [b"hello"]


def test_a_known_key_with_another_body_is_refused_and_keeps_its_answer(service):
    service.receive(delivery())
    refused = service.receive(delivery(b"other", fence=2))
    assert (refused.status, kind(refused)) == (422, "other-digest")
    assert service.charges() == [b"hello"]
    assert service.stored() == (1, 1, '{"number":1}')


def test_a_fence_lower_than_one_seen_is_refused_even_after_a_replay_only(service):
    service.receive(delivery(fence=1))
    assert service.receive(delivery(fence=3)).status == 200
    assert service.stored()[0] == 3
    stale = service.receive(delivery(fence=2))
    assert (stale.status, kind(stale)) == (412, "stale-fence")
    assert service.charges() == [b"hello"]


def test_work_that_fails_leaves_nothing_but_the_fence_that_was_seen(service):
    with pytest.raises(RuntimeError, match="the bank is closed"):
        service.receive(delivery(fence=5), service.fail)
    assert service.charges() == []
    assert service.stored() == (5, 0, None)
    assert service.look_up().status == 404
    assert service.receive(delivery(fence=4)).status == 412
    assert service.receive(delivery(fence=6, body=b"mended")).status == 201
    assert service.charges() == [b"mended"]


def test_a_refusal_is_answered_and_undone_and_a_later_sender_may_try_again(service):
    def refuse(connection, delivery):
        service.charge(connection, delivery)
        raise Refused("the account is closed", status=410)

    answer = service.receive(delivery(fence=2), refuse)
    assert (answer.status, kind(answer)) == (410, "refused")
    assert json.loads(answer.body)["detail"] == "the account is closed"
    assert service.charges() == []
    assert service.receive(delivery(fence=1)).status == 412
    assert service.receive(delivery(fence=3)).status == 201


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "must return a dict"),
        ([1], "must return a dict"),
        ({"x": float("nan")}, "not JSON compliant"),
        ({"x": object()}, "not JSON serializable"),
        ({"x": "\ud800"}, "surrogates"),
        ({"x": "y" * 60_000}, "at most 60,000"),
    ],
)
def test_an_answer_that_could_not_be_a_receipt_undoes_the_work(service, answer, says):
    def work(connection, delivery):
        service.charge(connection, delivery)
        return answer

    with pytest.raises((TypeError, ValueError), match=says):
        service.receive(delivery(), work)
    assert service.charges() == []
    assert service.stored() == (1, 0, None)


@pytest.mark.parametrize("end", ["commit", "rollback", "with"])
def test_work_that_ends_the_transaction_is_told_so(service, end):
    def work(connection, delivery):
        service.charge(connection, delivery)
        if end == "with":
            with connection:
                pass
        else:
            getattr(connection, end)()
        return {}

    with pytest.raises(RuntimeError, match="neither commit nor roll back"):
        service.receive(delivery(), work)


def test_a_connection_that_commits_by_itself_is_refused_before_anything_is_done(service):
    with service.connect(**service.by_itself) as connection, pytest.raises(ValueError, match="commits every"):
        service.receive(delivery(), connection=connection)
    assert service.stored() is None


def test_whatever_was_answered_no_transaction_stays_open(service):
    def refuse(connection, delivery):
        raise Refused("no")

    statuses = []
    for wanted, work in [
        (delivery(fence=2), refuse),
        (delivery(fence=3), None),
        (delivery(fence=4), None),
        (delivery(fence=1), None),
        (delivery(b"other", fence=4), None),
    ]:
        statuses.append(service.receive(wanted, work).status)
        assert not service.in_transaction()
    assert statuses == [403, 201, 200, 412, 422]
    for key in (KEY, "fp1-unknown"):
        service.look_up(key)
        assert not service.in_transaction()
    with pytest.raises(RuntimeError, match="the bank is closed"):
        service.receive(delivery(key="fp1-other"), service.fail)
    assert not service.in_transaction()


@contextlib.contextmanager
def being_done(service, answers):
    """A delivery over a connection of its own, in the middle of its work until the block ends."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection, delivery):
        inside.set()
        assert go_on.wait(60)
        return service.charge(connection, delivery)

    def run():
        with service.connect() as connection:
            answers.append(service.receive(delivery(), slow, connection=connection))

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(60)
    yield
    go_on.set()
    thread.join()


def test_a_delivery_waits_for_the_one_that_is_being_done_and_replays_its_answer(service):
    answers = []
    with ThreadPoolExecutor() as pool, service.connect(**service.patient) as connection:
        with being_done(service, answers):
            waiting = pool.submit(service.receive, delivery(fence=2), service.fail, connection=connection)
        first, second = answers[0], waiting.result()
    assert (first.status, second.status) == (201, 200)
    assert first.body == second.body
    assert service.charges() == [b"hello"]
    assert service.stored()[0] == 2


def test_who_cannot_wait_is_asked_to_come_back(service):
    answers = []
    with being_done(service, answers), service.connect(**service.impatient) as connection:
        busy = service.receive(delivery(), connection=connection)
        assert (busy.status, kind(busy)) == service.busy
        assert dict(busy.headers)["Retry-After"] == "1"
    assert answers[0].status == 201
    assert service.receive(delivery()).status == 200
    assert service.charges() == [b"hello"]


def test_the_answer_is_found_by_its_key(service):
    unknown = service.look_up()
    assert (unknown.status, kind(unknown)) == (404, "unknown-key")
    first = service.receive(delivery())
    found = service.look_up()
    assert (found.status, found.body) == (200, first.body)


def test_only_keys_from_before_the_instant_are_forgotten(service):
    for key, now_ms in (("old", 99), ("young", 100)):
        service.receive(delivery(key=key), now_ms=now_ms)
    forget(service.connection, before_ms=100, paramstyle=service.paramstyle)
    assert (service.look_up("old").status, service.look_up("young").status) == (404, 200)


def test_making_the_table_again_changes_nothing(service):
    service.receive(delivery())
    create_table(service.connection)
    assert service.look_up().status == 200
