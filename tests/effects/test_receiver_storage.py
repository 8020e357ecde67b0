"""Deliveries over a real database: the key, its answer and the service's own work are there together or not at all."""

import contextlib
import json
import sqlite3
import threading

import pytest
from fencepost.effects.receiver import Delivery, Refused, create_table, forget, look_up, receive

KEY = "fp1-abc"


def connect(path, **options):
    return contextlib.closing(sqlite3.connect(path, **options))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "service.db"
    with connect(path) as connection:
        create_table(connection)
        connection.execute("CREATE TABLE charges (number INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return path


@pytest.fixture
def connection(path):
    with connect(path) as connection:
        yield connection


def delivery(body=b"hello", fence=1, key=KEY):
    return Delivery(key=key, fence=fence, body=body)


def charge(connection, delivery):
    number = connection.execute("INSERT INTO charges (body) VALUES (?)", (delivery.body,)).lastrowid
    return {"number": number}


def charges(path):
    with connect(path) as connection:
        return [body for (body,) in connection.execute("SELECT body FROM charges ORDER BY number")]


def stored(path, key=KEY):
    with connect(path) as connection:
        return connection.execute(
            "SELECT fence, digest IS NOT NULL, answer FROM fencepost_received WHERE key = ?", (key,)
        ).fetchone()


def failing(connection, delivery):
    charge(connection, delivery)
    raise RuntimeError("the bank is closed")


def kind(answer):
    return json.loads(answer.body)["type"].rpartition(":")[2]


def test_a_new_key_is_worked_on_and_kept_with_its_answer(path, connection):
    answer = receive(connection, delivery(), charge)
    assert (answer.status, json.loads(answer.body)) == (201, {"number": 1})
    assert charges(path) == [b"hello"]
    assert stored(path) == (1, 1, '{"number":1}')


def test_a_known_key_is_answered_with_the_very_same_bytes(path, connection):
    first = receive(connection, delivery(), charge)
    again = receive(connection, delivery(), failing)
    assert (again.status, again.body) == (200, first.body)
    assert ("Idempotent-Replayed", "true") in again.headers
    assert charges(path) == [b"hello"]


def test_a_known_key_with_another_body_is_refused_and_keeps_its_answer(path, connection):
    receive(connection, delivery(), charge)
    refused = receive(connection, delivery(b"other", fence=2), charge)
    assert (refused.status, kind(refused)) == (422, "other-digest")
    assert charges(path) == [b"hello"]
    assert stored(path) == (1, 1, '{"number":1}')


def test_a_fence_lower_than_one_seen_is_refused_even_after_a_replay_only(path, connection):
    receive(connection, delivery(fence=1), charge)
    assert receive(connection, delivery(fence=3), charge).status == 200
    assert stored(path)[0] == 3
    stale = receive(connection, delivery(fence=2), charge)
    assert (stale.status, kind(stale)) == (412, "stale-fence")
    assert charges(path) == [b"hello"]


def test_work_that_fails_leaves_nothing_but_the_fence_that_was_seen(path, connection):
    with pytest.raises(RuntimeError, match="the bank is closed"):
        receive(connection, delivery(fence=5), failing)
    assert charges(path) == []
    assert stored(path) == (5, 0, None)
    assert look_up(connection, KEY).status == 404
    assert receive(connection, delivery(fence=4), charge).status == 412
    assert receive(connection, delivery(fence=6, body=b"mended"), charge).status == 201
    assert charges(path) == [b"mended"]


def test_a_refusal_is_answered_and_undone_and_a_later_sender_may_try_again(path, connection):
    def refuse(connection, delivery):
        charge(connection, delivery)
        raise Refused("the account is closed", status=410)

    answer = receive(connection, delivery(fence=2), refuse)
    assert (answer.status, kind(answer)) == (410, "refused")
    assert json.loads(answer.body)["detail"] == "the account is closed"
    assert charges(path) == []
    assert receive(connection, delivery(fence=1), charge).status == 412
    assert receive(connection, delivery(fence=3), charge).status == 201


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
def test_an_answer_that_could_not_be_a_receipt_undoes_the_work(path, connection, answer, says):
    def work(connection, delivery):
        charge(connection, delivery)
        return answer

    with pytest.raises((TypeError, ValueError), match=says):
        receive(connection, delivery(), work)
    assert charges(path) == []
    assert stored(path) == (1, 0, None)


@pytest.mark.parametrize("end", ["commit", "rollback", "with"])
def test_work_that_ends_the_transaction_is_told_so(connection, end):
    def work(connection, delivery):
        charge(connection, delivery)
        if end == "with":
            with connection:
                pass
        else:
            getattr(connection, end)()
        return {}

    with pytest.raises(RuntimeError, match="neither commit nor roll back"):
        receive(connection, delivery(), work)


def test_a_connection_that_commits_by_itself_is_refused_before_anything_is_done(path):
    with connect(path, isolation_level=None) as connection, pytest.raises(ValueError, match="commits every"):
        receive(connection, delivery(), charge)
    assert stored(path) is None


def test_two_deliveries_at_once_over_two_connections_are_done_once(path):
    inside, go_on, answers = threading.Event(), threading.Event(), {}

    def slow(connection, delivery):
        inside.set()
        assert go_on.wait(30)
        return charge(connection, delivery)

    def run(name, work):
        with connect(path, timeout=30) as connection:
            answers[name] = receive(connection, delivery(), work)

    first = threading.Thread(target=run, args=("first", slow))
    first.start()
    assert inside.wait(30)
    second = threading.Thread(target=run, args=("second", charge))
    second.start()
    go_on.set()
    first.join()
    second.join()
    assert (answers["first"].status, answers["second"].status) == (201, 200)
    assert answers["first"].body == answers["second"].body
    assert charges(path) == [b"hello"]


def test_a_lock_that_is_not_had_in_time_asks_the_sender_to_come_back(path):
    with connect(path) as holder, connect(path, timeout=0) as connection:
        holder.execute("BEGIN IMMEDIATE")
        busy = receive(connection, delivery(), charge)
        holder.rollback()
        assert (busy.status, kind(busy), dict(busy.headers)["Retry-After"]) == (503, "busy", "1")
        assert receive(connection, delivery(), charge).status == 201


def test_the_answer_is_found_by_its_key(connection):
    unknown = look_up(connection, KEY)
    assert (unknown.status, kind(unknown)) == (404, "unknown-key")
    first = receive(connection, delivery(), charge)
    found = look_up(connection, KEY)
    assert (found.status, found.body) == (200, first.body)


def test_only_keys_from_before_the_instant_are_forgotten(connection):
    for key, now_ms in (("old", 99), ("young", 100)):
        receive(connection, delivery(key=key), charge, now_ms=now_ms)
    forget(connection, before_ms=100)
    assert (look_up(connection, "old").status, look_up(connection, "young").status) == (404, 200)


def test_making_the_table_again_changes_nothing(connection):
    receive(connection, delivery(), charge)
    create_table(connection)
    assert look_up(connection, KEY).status == 200
