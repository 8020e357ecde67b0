"""``fencepost receiver``: a receiver of its own, safe by default, that puts each delivery into a table once."""

import signal
import sqlite3
from contextlib import closing

import pytest

from tests.effects.sending import headers, plain_client
from tests.programs import fencepost, refused

BODY = b"hello"


def test_it_announces_its_url_and_its_file_and_keeps_deliveries(world):
    url = world.receiver()
    assert url == f"http://127.0.0.1:{world.port}"
    with plain_client() as client:
        answer = client.post(url, content=BODY, headers=headers(BODY, content_type="text/x-order"))
    assert (answer.status_code, answer.json()["number"], answer.json()["bytes"]) == (201, 1, 5)
    with closing(sqlite3.connect(world.db)) as connection:
        rows = connection.execute("SELECT number, key, job, content_type, body FROM inbox").fetchall()
    assert rows == [(1, "fp1-abc", "job-1", "text/x-order", BODY)]


def test_it_remembers_over_a_restart(world):
    url = world.receiver()
    with plain_client() as client:
        first = client.post(url, content=BODY, headers=headers(BODY))
    world.processes[-1].terminate()
    assert world.processes[-1].end()[0] == 0
    assert world.receiver() == url
    with plain_client() as client:
        again = client.post(url, content=BODY, headers=headers(BODY, fence=2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert world.done() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_asked_to(world, number):
    world.receiver()
    world.processes[-1].signal(number)
    status, _, said = world.processes[-1].end()
    assert (status, said) == (0, "")


def test_the_token_of_the_environment_is_asked_for(world, monkeypatch):
    url = world.receiver(FENCEPOST_RECEIVER_TOKEN="s3cret")
    with plain_client() as client:
        refused = client.post(url, content=BODY, headers=headers(BODY))
        taken = client.post(url, content=BODY, headers=headers(BODY, authorization="Bearer s3cret"))
    assert (refused.status_code, taken.status_code) == (401, 201)
    event = world.attempt(url)
    assert event["state"] == "queued"
    assert "401" in event["error"]
    assert world.attempt(url, now_ms=10_000_000, FENCEPOST_REMOTE_TOKEN="s3cret")["state"] == "completed"
    ended = fencepost(
        "receiver", "check", url, env={"FENCEPOST_REMOTE_TOKEN": "s3cret", "NO_PROXY": "*"}
    )  # fmt: skip
    assert ended.returncode == 0


def test_listening_to_everybody_without_a_token_is_warned_of(world):
    world.receiver("--host", "0.0.0.0")
    world.processes[-1].terminate()
    assert "everybody who reaches" in world.processes[-1].end()[2]


def test_it_listens_only_to_this_machine_unless_told(world):
    world.receiver()
    world.processes[-1].terminate()
    assert world.processes[-1].end()[2] == ""


def test_what_cannot_be_opened_is_said_in_a_line(world, tmp_path):
    assert "name the file" in refused("receiver")
    assert "no/where.db" in refused("receiver", "--db", tmp_path / "no" / "where.db")
    assert "must be a path" in refused("receiver", "--db", tmp_path / "x.db", "--base", "orders")
    world.receiver()
    said = refused("receiver", "--db", tmp_path / "y.db", "--port", str(world.port))
    assert f"port {world.port} cannot be listened on: Address already in use" in said
