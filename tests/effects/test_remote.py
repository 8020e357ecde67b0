"""The effect ``remote``: what it sends, what it makes of each answer, and when it refuses to send."""

import json
import socket
from email.utils import formatdate
from pathlib import Path
from time import time

import pytest
from fencepost.core import (
    Hold,
    InvalidInput,
    LeaseLost,
    PluginError,
    Reject,
    Retry,
)
from fencepost.core.model.effect import Applied, Unknown

from tests.effects.scripted import WELL_KNOWN, Said, scripted
from tests.effects.sending import content_digest, request

DAY_MS = 86_400_000


# -- What is sent --


def test_a_delivery_carries_key_job_fence_and_digest(receiver, choose):
    wanted = request("héllo", fence=1)
    outcome = choose().apply(wanted)
    assert outcome == {"key": wanted.idempotency_key, "answer": {"number": 1}}
    [sent] = receiver.deliveries()
    assert (sent.method, sent.path, sent.body) == ("POST", "/orders", "héllo".encode())
    assert sent.headers["idempotency-key"] == f'"{wanted.idempotency_key}"'
    assert (sent.headers["fencepost-job"], sent.headers["fencepost-fence"]) == ("job-1", "1")
    assert sent.headers["content-digest"] == content_digest("héllo".encode())
    assert sent.headers["content-type"] == "text/plain; charset=utf-8"
    assert "authorization" not in sent.headers


def test_the_body_can_be_id_and_text_and_the_headers_can_be_more(receiver, choose):
    choose(body="json", method="PUT", headers={"X-Tenant": "blue"}).apply(request("hé"))
    [sent] = receiver.deliveries()
    assert (sent.method, json.loads(sent.body)) == ("PUT", {"id": "job-1", "text": "hé"})
    assert (sent.headers["x-tenant"], sent.headers["content-type"]) == ("blue", "application/json")


def test_a_content_type_of_ones_own_stands(receiver, choose):
    choose(headers={"Content-Type": "application/xml"}).apply(request())
    assert receiver.deliveries()[0].headers["content-type"] == "application/xml"


def test_the_token_goes_along_with_every_request_and_is_never_shown(receiver, choose, monkeypatch):
    monkeypatch.setenv("FENCEPOST_REMOTE_TOKEN", "s3cret")
    receiver.delivery = Said(400, {"detail": "the token s3cret is not welcome"})
    with pytest.raises(Reject) as refused:
        choose().apply(request(fence=2))
    assert {seen.headers["authorization"] for seen in receiver.seen} == {"Bearer s3cret"}
    assert len(receiver.seen) == 3
    assert "s3cret" not in str(refused.value)
    assert "*** is not welcome" in str(refused.value)


def test_what_is_too_large_is_refused_at_enqueue_and_never_sent(receiver, choose):
    effect = choose(max_body_bytes=10)
    effect.validate("x" * 10)
    with pytest.raises(InvalidInput, match="the body would have 12 bytes, at most 10"):
        effect.validate("é" * 6)
    with pytest.raises(Reject, match="at most 10"):
        effect.apply(request("x" * 11))
    assert receiver.deliveries() == []


# -- The declaration comes first --


def test_the_declaration_is_asked_for_once_before_the_first_send(receiver, choose):
    effect = choose()
    effect.apply(request())
    effect.apply(request())
    assert [seen.method for seen in receiver.seen] == ["GET", "POST", "POST"]
    assert receiver.asked() == [f"/orders{WELL_KNOWN}"]


@pytest.mark.parametrize(
    "said",
    [
        Said(404),
        Said(200, body=b"<html>welcome</html>"),
        Said(200, {"status": "ok"}),
        Said(200, {"fencepost_receiver": 2, "keys_kept_s": None}),
        Said(200, ["fencepost_receiver"]),
        Said(201, {"fencepost_receiver": 1}),
        Said(301, headers={"Location": "http://127.0.0.1:1/"}),
        Said(401),
        Said(200, {"fencepost_receiver": 1, "keys_kept_s": 0}),
        Said(200, {"fencepost_receiver": 1, "keys_kept_s": "30 days"}),
        Said(200, {"fencepost_receiver": 1, "keys_kept_s": True}),
    ],
)
def test_nothing_is_ever_sent_to_what_does_not_declare_the_contract(receiver, choose, said):
    receiver.declaration = said
    effect = choose()
    for _ in range(2):
        with pytest.raises(PluginError, match=r"does not declare|keys_kept_s must be"):
            effect.apply(request())
    with pytest.raises(PluginError):
        effect.reconcile(request())
    assert receiver.deliveries() == []
    assert set(receiver.asked()) == {f"/orders{WELL_KNOWN}"}


def test_the_refusal_says_what_to_build_and_where_it_is_described(receiver, choose):
    receiver.declaration = Said(404)
    with pytest.raises(PluginError, match=r"docs/how-to/build-a-receiver\.md.*fencepost receiver check"):
        choose().apply(request())
    assert (Path(__file__).parents[2] / "docs/how-to/build-a-receiver.md").is_file()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_receiver_that_cannot_answer_now_is_asked_again(receiver, choose, status):
    receiver.declaration = Said(status, headers={"Retry-After": "7"})
    with pytest.raises(Retry) as retry:
        choose().apply(request())
    assert retry.value.after_s == 7
    assert receiver.deliveries() == []


def test_a_receiver_that_is_not_there_is_tried_again(receiver, choose):
    with socket.socket() as taken:  # bound, and never listening
        taken.bind(("127.0.0.1", 0))
        effect = choose(url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(Retry, match="not sent, no connection"):
            effect.apply(request())


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_that_does_not_answer_is_named_with_its_variable(choose, monkeypatch, variable):
    with socket.socket() as taken:  # bound, and never listening
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(variable, f"http://ann:secret@127.0.0.1:{port}")
        with pytest.raises(Retry, match=rf"through the proxy 127\.0\.0\.1:{port} of {variable}\)") as error:
            choose(url="http://receiver.example/orders", plain_http=True).apply(request())
        assert "secret" not in str(error.value)


def test_a_receiver_that_no_proxy_is_used_for_is_not_said_to_be_behind_one(choose, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(Retry) as error:
            choose(url=f"http://127.0.0.1:{taken.getsockname()[1]}").apply(request())
        assert "proxy" not in str(error.value)


# -- After an earlier attempt: ask before sending --


def test_the_first_attempt_does_not_ask_for_a_receipt(receiver, choose):
    choose().apply(request(fence=1))
    assert len(receiver.asked()) == 1


def test_a_later_attempt_takes_the_receipt_that_is_there_and_sends_nothing(receiver, choose):
    receiver.receipt = Said(200, {"number": 7})
    wanted = request(fence=2)
    assert choose().apply(wanted) == {"key": wanted.idempotency_key, "answer": {"number": 7}}
    assert receiver.asked()[1:] == [f"/orders{WELL_KNOWN}/{wanted.idempotency_key}"]
    assert receiver.deliveries() == []


def test_a_later_attempt_sends_if_the_key_is_unknown(receiver, choose):
    receiver.receipt = Said(404)
    assert choose().apply(request(fence=2))["answer"] == {"number": 1}
    assert len(receiver.deliveries()) == 1


@pytest.mark.parametrize(
    ("said", "signal"),
    [(Said(409, headers={"Retry-After": "3"}), Retry), (Said(503), Retry), (Said(405), PluginError)],
)
def test_a_later_attempt_does_not_send_while_the_answer_is_open(receiver, choose, said, signal):
    receiver.receipt = said
    with pytest.raises(signal):
        choose().apply(request(fence=2))
    assert receiver.deliveries() == []


def test_first_answer_replay_and_receipt_make_one_and_the_same_outcome(receiver, choose):
    effect = choose()
    first = effect.apply(request(fence=1))
    receiver.delivery = Said(200, {"number": 1}, {"Idempotent-Replayed": "true", "Date": "another"})
    replayed = effect.apply(request(fence=2))
    receiver.receipt = Said(200, {"number": 1})
    assert first == replayed == effect.apply(request(fence=3))


def test_reconcile_says_yes_or_unknown_and_never_no(receiver, choose):
    effect = choose()
    assert isinstance(effect.reconcile(request()), Unknown)
    receiver.receipt = Said(200, {"number": 7})
    wanted = request()
    assert effect.reconcile(wanted) == Applied({"key": wanted.idempotency_key, "answer": {"number": 7}})
    assert receiver.deliveries() == []


@pytest.mark.parametrize(
    ("age_ms", "held"), [(DAY_MS - 1, False), (DAY_MS, True), (DAY_MS + 1, True), (None, True)]
)
def test_a_job_older_than_the_receivers_keys_is_held_instead_of_sent(receiver, choose, age_ms, held):
    receiver.declaration = Said(200, {"fencepost_receiver": 1, "keys_kept_s": 86_400})
    effect = choose()
    now_ms = None if age_ms is None else 5 + age_ms
    wanted = request(fence=2, first_claimed_at_ms=5, now_ms=now_ms)
    if held:
        with pytest.raises(Hold, match="keys"):
            effect.apply(wanted)
    else:
        effect.apply(wanted)
    assert len(receiver.deliveries()) == (0 if held else 1)
    receiver.receipt = Said(200, {"number": 7})
    assert effect.apply(wanted)["answer"] == {"number": 7}


def test_a_lease_that_is_lost_while_it_asked_sends_nothing(receiver, choose):
    def refuse(request):
        raise LeaseLost("gone")

    wanted = request(fence=2)
    wanted._extend = refuse
    with pytest.raises(LeaseLost):
        choose().apply(wanted)
    assert receiver.deliveries() == []


# -- What is made of an answer --


@pytest.mark.parametrize(
    ("said", "signal", "says"),
    [
        (Said(412, {"detail": "newer"}), LeaseLost, "newer"),
        (Said(422, {"detail": "other body"}), Hold, "other body"),
        (Said(409), Retry, "still at it"),
        (Said(408), Retry, "cannot answer now"),
        (Said(425), Retry, "cannot answer now"),
        (Said(429), Retry, "cannot answer now"),
        (Said(500), Retry, "cannot answer now"),
        (Said(503), Retry, "cannot answer now"),
        (Said(400, {"detail": "no such account"}), Reject, "no such account"),
        (Said(401), Reject, "401"),
        (Said(404), Reject, "404"),
        (Said(413, body=b"much too large"), Reject, "much too large"),
        (Said(200, {"number": 1}), Hold, "neither 201 nor a replay"),
        (Said(202, {"queued": True}), Hold, "neither 201 nor a replay"),
        (Said(204), Hold, "neither 201 nor a replay"),
        (Said(201, body=b"done!"), Hold, "no JSON object"),
        (Said(201, [1]), Hold, "no JSON object"),
        (Said(201, body=b'{"x": NaN}'), Hold, "no JSON object"),
        (Said(201, body=b'{"x": "\\ud800"}'), Hold, "no JSON object"),
        (Said(201, body=b"[" * 100_000), Hold, "no JSON object"),
        (Said(201, {"x": "y" * 60_000}), Hold, "at most 60,000"),
    ],
)
def test_each_answer_says_how_the_job_goes_on(receiver, choose, said, signal, says):
    receiver.delivery = said
    with pytest.raises(signal, match=says) as raised:
        choose().apply(request())
    assert len(str(raised.value)) < 700
    assert len(receiver.deliveries()) == 1


def test_the_largest_answer_that_is_taken_fits_a_receipt(receiver, choose):
    from fencepost.core.model.receipts import check_outcome

    largest = {"x": "y" * (60_000 - len('{"x": ""}'))}
    receiver.delivery = Said(201, largest)
    assert check_outcome(choose().apply(request()))["answer"] == largest


@pytest.mark.parametrize(
    ("value", "after_s"),
    [("7", 7), ("0", 0), ("999999999", 3_600), ("soon", None), ("-5", None), ("", None), ("1e3", None)],
)
def test_retry_after_is_followed_within_an_hour(receiver, choose, value, after_s):
    receiver.delivery = Said(503, headers={"Retry-After": value})
    with pytest.raises(Retry) as retry:
        choose().apply(request())
    assert retry.value.after_s == after_s


def test_retry_after_may_be_a_date(receiver, choose):
    receiver.delivery = Said(503, headers={"Retry-After": formatdate(time() + 600, usegmt=True)})
    with pytest.raises(Retry) as retry:
        choose().apply(request())
    assert 500 < retry.value.after_s <= 600
    receiver.delivery = Said(503, headers={"Retry-After": formatdate(0, usegmt=True)})
    with pytest.raises(Retry) as retry:
        choose().apply(request())
    assert retry.value.after_s == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receiver, choose, status):
    with scripted() as elsewhere:
        receiver.delivery = Said(status, headers={"Location": elsewhere.url})
        with pytest.raises(PluginError, match=r"redirects to .* set url"):
            choose().apply(request())
        assert elsewhere.seen == []
