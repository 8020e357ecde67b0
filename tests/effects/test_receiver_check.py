"""``fencepost receiver check``: it passes what keeps the contract, and names the rows that a wrong receiver breaks."""

import json

import pytest
from fencepost.effects.receiver.check import Check

from tests.effects import wrong_receivers as wrong
from tests.effects.sending import plain_client
from tests.effects.worlds import ENVIRONMENT
from tests.programs import fencepost

ROWS = [
    "declaration",
    "new",
    "replay",
    "stale-fence",
    "other-digest",
    "missing-key",
    "malformed-key",
    "missing-digest",
    "wrong-digest",
    "concurrency",
    "reconcile",
]


def check(receiver):
    with wrong.serving(receiver) as url, plain_client() as client:
        return list(Check(client, url).rows())


def command(*arguments, **environment):
    return fencepost("receiver", "check", *arguments, env={**ENVIRONMENT, **environment})


def test_a_receiver_that_keeps_the_contract_passes_every_row():
    rows = check(wrong.Right())
    assert [(row.name, row.failure) for row in rows] == [(name, None) for name in ROWS]


@pytest.mark.parametrize(
    ("receiver", "broken"),
    [
        (wrong.ForgetsKeys, {"replay", "stale-fence", "other-digest", "concurrency"}),
        (wrong.IgnoresFences, {"stale-fence"}),
        (wrong.IgnoresTheBody, {"other-digest"}),
        (wrong.LooksBeforeItLeaps, {"concurrency"}),
        (wrong.AnswersAnew, {"replay", "stale-fence", "other-digest", "concurrency"}),
        (wrong.TakesAnything, {"missing-key", "malformed-key", "missing-digest", "wrong-digest"}),
        (wrong.CannotBeAsked, {"declaration", "reconcile"}),
    ],
)
def test_a_wrong_receiver_fails_the_rows_that_it_breaks_and_no_other(receiver, broken):
    rows = check(receiver())
    assert {row.name for row in rows if not row.ok} == broken
    assert all(row.failure for row in rows if not row.ok)


def test_nobody_there_fails_every_row_and_says_so():
    with plain_client() as client:
        rows = list(Check(client, "http://127.0.0.1:9").rows())
    assert [row.name for row in rows] == ROWS
    assert all("no answer: ConnectError" in row.failure for row in rows)


def test_the_command_passes_the_receiver_that_ships(world):
    url = world.receiver("--base", "/orders")
    assert url.endswith("/orders")
    ended = command(url)
    assert (ended.returncode, ended.stderr) == (0, b"")
    document = json.loads(ended.stdout)
    assert [(row["name"], row["ok"]) for row in document["rows"]] == [(name, True) for name in ROWS]
    ended = command(url, "--method", "PUT", "--body", '{"a": 1}', "--content-type", "application/json")
    assert ended.returncode == 0
    document = json.loads(ended.stdout)
    assert (document["schema_version"], document["url"]) == (1, url)
    assert [(row["name"], row["ok"]) for row in document["rows"]] == [(name, True) for name in ROWS]


def test_the_command_fails_with_the_table_and_nothing_on_stdout():
    with wrong.serving(wrong.IgnoresFences()) as url:
        ended = command(url)
    assert (ended.returncode, ended.stdout) == (1, b"")
    said = ended.stderr.decode()
    assert f"{url} does not keep 1 of 11 rows" in said
    assert "FAIL  stale-fence" in said
    assert "but: expected 412, got 200" in said
    assert said.count("ok    ") == 10


def test_the_command_refuses_what_is_no_url():
    ended = command("localhost:8470")
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"must begin with https:// or http://" in ended.stderr
