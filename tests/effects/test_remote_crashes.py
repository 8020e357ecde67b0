"""Whatever is killed, cut off or late: the work is done once, counted in the receiver's own database.

Every worker and every receiver is a process of its own, over real sockets. A claim after a claim has its fence two
higher: the settling that takes a job back, and a retry, move it too.
"""

import json
from contextlib import closing
from http import HTTPStatus

import pytest

from tests.effects.scripted import Said, scripted
from tests.effects.worlds import ENVIRONMENT, LEASE_MS, World
from tests.programs import fencepost

LATER_MS = 10_000_000
"""After every backoff."""


def state(event):
    return event["state"], event["version"], event["reused_effect"]


def assert_done_once(world):
    assert world.done() == 1
    assert world.job().state == "completed"
    assert world.receipt().outcome["answer"]["number"] == 1


@pytest.mark.parametrize("ledger", ["store", "jobs.db"])
def test_undisturbed(tmp_path, ledger):
    with closing(World(tmp_path, ledger=ledger)) as world:
        assert state(world.attempt(world.receiver())) == ("completed", 1, False)
        assert_done_once(world)


def test_a_worker_is_killed_between_its_send_and_its_receipt(world):
    proxy = world.proxy(world.receiver())
    proxy.answers_pass.clear()
    first = world.worker(proxy.url)
    assert proxy.answered.wait(60)
    first.kill()
    assert (world.done(), world.receipt(), world.job().state) == (1, None, "running")
    proxy.answers_pass.set()
    assert state(world.attempt(proxy.url, now_ms=LEASE_MS)) == ("completed", 3, False)
    assert proxy.statuses == [201]
    assert_done_once(world)


def test_a_worker_is_killed_while_the_receiver_works_and_the_next_one_waits_for_it(world):
    url, receiver = world.odd_receiver("waits")
    first = world.worker(url)
    assert receiver.line() == "working\n"
    first.kill()
    waits = world.attempt(url, now_ms=LEASE_MS)
    assert waits["state"] == "queued"
    assert "still at it: 409" in waits["error"]
    assert world.done() == 0
    # The receiver goes on although nobody waits for its answer; only a question by key shows when it is done.
    receiver.go_on()
    now_ms = LATER_MS
    while (event := world.attempt(url, now_ms=now_ms))["state"] == "queued":
        assert "still at it: 409" in event["error"]
        now_ms += LATER_MS
    assert event["state"] == "completed"
    assert_done_once(world)


@pytest.mark.parametrize(("how", "done"), [("dies-before-commit", 0), ("dies-after-commit", 1)])
def test_the_receiver_is_killed_around_its_commit(world, how, done):
    url, receiver = world.odd_receiver(how)
    event = world.attempt(url)
    assert event["state"] == "queued"
    assert "the outcome is not known" in event["error"]
    assert receiver.end()[0] == -9
    assert (world.done(), world.receipt()) == (done, None)
    assert world.receiver() == url
    assert state(world.attempt(url, now_ms=LATER_MS)) == ("completed", 3, False)
    assert world.fence_seen() == (1 if done else 3)
    assert_done_once(world)


def test_the_connection_is_cut_after_the_request_was_applied(world):
    url = world.receiver()
    proxy = world.proxy(url)
    proxy.drops_answers = True
    event = world.attempt(proxy.url)
    assert event["state"] == "queued"
    assert "the outcome is not known" in event["error"]
    assert (world.done(), proxy.statuses) == (1, [201])
    assert state(world.attempt(proxy.url, now_ms=LATER_MS)) == ("completed", 3, False)
    assert proxy.statuses == [201]
    assert_done_once(world)


def test_an_answer_that_comes_after_the_lease_finds_the_job_done_by_another_worker(world):
    url = world.receiver()
    proxy = world.proxy(url)
    proxy.answers_pass.clear()
    slow = world.worker(proxy.url)
    assert proxy.answered.wait(60)
    assert state(world.attempt(url, now_ms=LEASE_MS)) == ("completed", 3, False)
    proxy.answers_pass.set()
    status, out, said = slow.end()
    assert (status, out) == (1, "")
    assert "the lease of job 'job-1' was lost" in said
    assert_done_once(world)


def test_a_receiver_that_works_past_the_lease_does_it_once_for_two_workers(world):
    url, receiver = world.odd_receiver("waits")
    slow = world.worker(url)
    assert receiver.line() == "working\n"
    assert world.attempt(url, now_ms=LEASE_MS)["state"] == "queued"
    receiver.go_on()
    status, _, said = slow.end()
    assert status == 1
    assert "a receipt that was published stays" in said
    assert (world.job().state, world.receipt().outcome["answer"]["number"]) == ("queued", 1)
    assert state(world.attempt(url, now_ms=LATER_MS)) == ("completed", 5, True)
    assert_done_once(world)


def test_a_stale_sender_that_arrives_late_is_refused_by_its_fence(world):
    url = world.receiver()
    proxy = world.proxy(url)
    proxy.requests_pass.clear()
    stale = world.worker(proxy.url)
    assert proxy.arrived.wait(60)
    assert state(world.attempt(url, now_ms=LEASE_MS)) == ("completed", 3, False)
    proxy.requests_pass.set()
    status, out, said = stale.end()
    assert (status, out) == (1, "")
    assert "lost" in said
    assert proxy.statuses == [412]
    assert world.fence_seen() == 3
    assert_done_once(world)


def test_twenty_ledgers_with_one_key_have_it_done_once(tmp_path, world):
    url = world.receiver()
    stores = [str(tmp_path / f"store-{number}") for number in range(20)]
    for store in stores:
        world.enqueue(store)
    workers = [world.worker(url, store=store) for store in stores]
    states = []
    for worker in workers:
        status, out, said = worker.end()
        assert status == 0, said
        [event] = json.loads(out)["events"]
        states.append(event["state"])
        assert event["state"] == "completed" or "409" in event["error"]
    assert "completed" in states
    assert world.done() == 1


@pytest.mark.parametrize(
    "said",
    [Said(404), Said(200, body=b"<html>welcome</html>"), Said(200, {"ok": True}), Said(201, {"number": 1})],
)
def test_an_impostor_without_the_contract_is_never_sent_anything(world, said):
    with scripted() as impostor:
        impostor.declaration = said
        for now_ms in (0, LATER_MS):
            event = world.attempt(impostor.url, now_ms=now_ms)
            assert event["state"] == "queued"
            assert "does not declare a receiver that keeps idempotency keys" in event["error"]
            assert str(HTTPStatus(said.status).value) in event["error"]
        assert impostor.deliveries() == []
    assert world.receipt() is None


def test_a_job_whose_key_may_be_forgotten_is_held(world):
    url = world.receiver("--keep-keys-days", "1")
    proxy = world.proxy(url)
    proxy.requests_pass.clear()
    first = world.worker(proxy.url)
    assert proxy.arrived.wait(60)
    first.kill()
    event = world.attempt(url, now_ms=86_400_000)
    assert event["state"] == "held"
    assert "keeps keys for 86,400 s" in event["error"]
    assert world.done() == 0


def test_plugins_check_asks_for_the_declaration_too():
    with scripted() as impostor:
        impostor.declaration = Said(404)
        ended = fencepost(
            *("plugins", "check", "remote", "--set", f"url={impostor.url}"),
            *("--observed", "echo 0", "--point", "undisturbed"),
            env=ENVIRONMENT,
        )
        assert (ended.returncode, ended.stdout) == (1, b"")
        assert b"does not declare a receiver that keeps idempotency keys" in ended.stderr
        assert impostor.deliveries() == []
