"""A receiver over HTTP: the same answers from the server of its own and from within an ASGI application."""

import asyncio
import http.client
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fencepost.effects.receiver import Receiver, ReceiverMiddleware, Refused
from fencepost.effects.receiver.inbox import Inbox
from fencepost.effects.receiver.server import Server

from tests.effects.sending import headers, plain_client

WELL_KNOWN = "/orders/.well-known/fencepost-receiver"
BODY = b"hello"


class Service:
    """A receiver at /orders, over an inbox; ``work`` can be changed at any time."""

    def __init__(self, path, **options):
        self.inbox = Inbox(str(path))
        self.work = self.inbox.add
        self.receiver = Receiver(
            self.inbox.connect, lambda *given: self.work(*given), base="/orders", **options
        )

    def bodies(self):
        with self.inbox.connect() as connection:
            return [body for (body,) in connection.execute("SELECT body FROM inbox ORDER BY number")]


async def app(scope, receive, send):
    """The application behind the middleware."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"the application: " + scope["path"].encode()})


@pytest.fixture(params=["server", "asgi"])
def serve(request, tmp_path):
    """Serves a receiver; gives the service and a function that makes one request."""
    servers = []

    def serve(**options):
        service = Service(tmp_path / "receiver.db", **options)
        if request.param == "asgi":
            middleware = ReceiverMiddleware(app, service.receiver)

            async def ask(method, path, **more):
                transport = httpx.ASGITransport(middleware)
                async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                    return await client.request(method, path, **more)

            return service, lambda method, path, **more: asyncio.run(ask(method, path, **more))
        server = Server(service.receiver)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        return service, lambda method, path, **more: client.request(method, server.url + path, **more)

    with plain_client() as client:
        yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def kind(response):
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == response.status_code
    assert document["title"]
    assert document["detail"]
    return document["type"].removeprefix("urn:fencepost:receiver:")


def deliver(ask, body=BODY, *, method="POST", path="/orders", **given):
    return ask(method, path, content=body, headers=headers(body, **given))


def test_it_declares_that_it_keeps_the_contract(serve):
    _, ask = serve()
    response = ask("GET", WELL_KNOWN)
    assert (response.status_code, response.json()) == (200, {"fencepost_receiver": 1, "keys_kept_s": None})
    assert response.headers["cache-control"] == "no-store"


def test_it_declares_how_long_it_keeps_keys(serve):
    _, ask = serve(keys_kept_s=86_400)
    assert ask("GET", WELL_KNOWN).json()["keys_kept_s"] == 86_400


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_new_then_replay_then_the_receipt_by_key(serve, method):
    service, ask = serve()
    first = deliver(ask, method=method)
    again = deliver(ask, method=method, fence=2)
    receipt = ask("GET", f"{WELL_KNOWN}/fp1-abc")
    assert [first.status_code, again.status_code, receipt.status_code] == [201, 200, 200]
    assert first.content == again.content == receipt.content
    assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
    assert service.bodies() == [BODY]


def test_what_is_refused_says_why(serve):
    service, ask = serve()
    deliver(ask, fence=2)
    assert kind(deliver(ask, fence=1)) == "stale-fence"
    assert kind(deliver(ask, b"other", fence=2)) == "other-digest"
    assert kind(ask("GET", f"{WELL_KNOWN}/fp1-unknown")) == "unknown-key"
    assert kind(ask("POST", "/orders", content=BODY)) == "malformed"
    assert service.bodies() == [BODY]


def test_a_key_may_hold_what_a_path_must_escape(serve):
    _, ask = serve()
    first = deliver(ask, key="a/b c%d")
    assert ask("GET", f"{WELL_KNOWN}/a%2Fb%20c%25d").content == first.content


def test_a_key_that_is_being_worked_on_makes_others_wait_and_remembers_their_fence(serve):
    service, ask = serve()
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection, delivery):
        inside.set()
        assert go_on.wait(30)
        return service.inbox.add(connection, delivery)

    service.work = slow
    with ThreadPoolExecutor() as pool:
        first = pool.submit(deliver, ask, fence=2)
        assert inside.wait(30)
        waits = deliver(ask, fence=4)
        assert (waits.status_code, kind(waits), waits.headers["retry-after"]) == (409, "in-progress", "1")
        assert kind(deliver(ask, fence=1)) == "stale-fence"
        assert kind(deliver(ask, b"other", fence=4)) == "other-digest"
        undecided = ask("GET", f"{WELL_KNOWN}/fp1-abc")
        assert (undecided.status_code, undecided.headers["retry-after"]) == (409, "1")
        go_on.set()
        assert first.result().status_code == 201
    assert kind(deliver(ask, fence=3)) == "stale-fence"
    assert deliver(ask, fence=4).status_code == 200
    assert service.bodies() == [BODY]


def test_work_that_fails_is_undone_and_can_be_tried_again(serve, caplog):
    service, ask = serve()

    def failing(connection, delivery):
        service.inbox.add(connection, delivery)
        raise RuntimeError("the bank is closed")

    service.work = failing
    with caplog.at_level(logging.ERROR, "fencepost.receiver"):
        failed = deliver(ask)
    assert (failed.status_code, kind(failed)) == (500, "failed")
    assert "bank" not in failed.text
    assert "the bank is closed" in caplog.text
    assert service.bodies() == []
    service.work = service.inbox.add
    assert deliver(ask, fence=2).status_code == 201


def test_work_may_refuse_for_good(serve):
    service, ask = serve()

    def refuse(connection, delivery):
        raise Refused("the account is closed", status=403)

    service.work = refuse
    refused = deliver(ask)
    assert (refused.status_code, kind(refused)) == (403, "refused")
    assert refused.json()["detail"] == "the account is closed"


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Basic secret", "secret", "Bearer sécret"])
def test_without_the_token_nothing_is_answered(serve, given):
    service, ask = serve(token="secret")
    sent = {} if given is None else {"authorization": given.encode("latin-1")}
    for method, path in (("POST", "/orders"), ("GET", WELL_KNOWN), ("GET", f"{WELL_KNOWN}/fp1-abc")):
        refused = ask(method, path, headers={**headers(BODY), **sent}, content=BODY)
        assert (refused.status_code, kind(refused)) == (401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
    assert service.bodies() == []
    assert deliver(ask, authorization="Bearer secret").status_code == 201


def test_large_bodies_are_refused_at_the_bound(serve):
    service, ask = serve(max_body_bytes=1_000)
    refused = deliver(ask, b"x" * 1_001)
    assert (refused.status_code, kind(refused)) == (413, "too-large")
    assert deliver(ask, b"x" * 1_000).status_code == 201
    assert len(service.bodies()) == 1


@pytest.mark.parametrize("expect", ["", "Expect: 100-continue\r\n"])
def test_a_body_whose_length_is_too_large_is_refused_before_it_comes(tmp_path, expect):
    server = Server(Service(tmp_path / "receiver.db", max_body_bytes=1_000).receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with socket.create_connection(server.server_address, timeout=20) as connection:
            head = f"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n{expect}\r\n"
            connection.sendall(head.encode())
            # Nothing of the body is sent: the answer and the end of the connection come all the same.
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    finally:
        server.shutdown()
        server.server_close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"100 Continue" not in answer


def test_a_sender_that_writes_all_of_a_body_that_is_too_large_sees_the_answer(tmp_path):
    server = Server(Service(tmp_path / "receiver.db", max_body_bytes=1_000).receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with plain_client() as client:
            for _ in range(5):
                body = b"x" * 4_000_000
                response = client.post(f"{server.url}/orders", content=body, headers=headers(body))
                assert (response.status_code, kind(response)) == (413, "too-large")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("name", ["Fencepost-Job", "Content-Type"])
@pytest.mark.parametrize("value", ["a\x1b[31mb", "a\x07", "a\x7f", "a\x9b2J"])
def test_control_characters_in_what_people_read_are_refused(tmp_path, name, value):
    service = Service(tmp_path / "receiver.db")
    sent = [(field, one) for field, one in headers(BODY).items() if field.lower() != name.lower()]
    refused = service.receiver.deliver([*sent, (name, value)], BODY)
    assert refused.status == 400
    assert f"{name} has a control character" in refused.body.decode()
    assert service.bodies() == []


def test_the_well_known_paths_are_only_asked(serve):
    _, ask = serve()
    refused = ask("POST", WELL_KNOWN)
    assert (refused.status_code, kind(refused)) == (405, "method-not-allowed")
    assert refused.headers["allow"] == "GET, HEAD"
    head = ask("HEAD", WELL_KNOWN)
    assert (head.status_code, head.content) == (200, b"")


def test_the_database_that_cannot_be_asked_is_no_unknown_key(serve):
    service, ask = serve()
    with service.inbox.connect() as connection:
        connection.execute("DROP TABLE fencepost_received")
        connection.commit()
    for response in (ask("GET", f"{WELL_KNOWN}/fp1-abc"), deliver(ask)):
        assert (response.status_code, kind(response)) == (500, "failed")


# -- Only within an application --


def test_the_application_answers_all_that_is_not_the_receivers(tmp_path):
    middleware = ReceiverMiddleware(app, Service(tmp_path / "receiver.db").receiver)

    async def ask(path):
        transport = httpx.ASGITransport(middleware)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return (await client.get(path)).text

    for path in ("/", "/orders", "/orders/17", "/orders-of-others", "/.well-known/fencepost-receiver"):
        assert asyncio.run(ask(path)) == f"the application: {path}"


def test_other_kinds_of_connection_go_to_the_application(tmp_path):
    seen = []

    async def other(scope, receive, send):
        seen.append(scope["type"])

    middleware = ReceiverMiddleware(other, Service(tmp_path / "receiver.db").receiver)
    for type in ("lifespan", "websocket"):
        asyncio.run(middleware({"type": type, "path": "/orders"}, None, None))
    assert seen == ["lifespan", "websocket"]


def test_a_body_that_does_not_say_its_length_is_read_only_up_to_the_bound(tmp_path):
    service = Service(tmp_path / "receiver.db", max_body_bytes=1_000)
    taken = []

    async def parts():
        for _ in range(100):
            taken.append(100)
            yield b"x" * 100

    async def ask():
        transport = httpx.ASGITransport(ReceiverMiddleware(app, service.receiver))
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.post("/orders", content=parts(), headers=headers(b"x" * 10_000))

    response = asyncio.run(ask())
    assert (response.status_code, kind(response)) == (413, "too-large")
    assert sum(taken) <= 1_200
    assert service.bodies() == []


def test_a_sender_that_goes_away_within_its_body_has_delivered_nothing(tmp_path):
    service = Service(tmp_path / "receiver.db")
    messages = [
        {"type": "http.request", "body": b"hel", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/orders",
        "headers": [(name.encode(), value.encode()) for name, value in headers(BODY).items()],
    }
    asyncio.run(ReceiverMiddleware(app, service.receiver)(scope, receive, send))
    assert (sent, service.bodies()) == ([], [])


# -- Only the server --


@pytest.fixture
def server(tmp_path):
    service = Service(tmp_path / "receiver.db")
    with Server(service.receiver) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield service, server
        server.shutdown()


def raw(server, request):
    """What comes back for these bytes, until the server closes."""
    with socket.create_connection(server.server_address, timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def request_head(*lines):
    given = [f"{name}: {value}" for name, value in headers(BODY).items()]
    return "\r\n".join(["POST /orders HTTP/1.1", "Host: here", *given, *lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (request_head("Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n", 411),
        (request_head("Content-Length: 5", "Content-Length: 6") + BODY, 400),
        (request_head("Content-Length: five") + BODY, 400),
        (request_head("Content-Length: -5") + BODY, 400),
        (request_head(), 400),
        (b"nonsense\r\n\r\n", 400),
        (b"BREW /orders HTTP/1.1\r\n\r\n", 501),
    ],
)
def test_what_is_no_clear_http_is_a_problem_and_ends_the_connection(server, request_bytes, status):
    service, listening = server
    answer = raw(listening, request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == status
    assert service.bodies() == []


def test_what_is_not_the_receivers_is_refused(server):
    _, listening = server
    with plain_client() as client:
        refused = client.get(f"{listening.url}/orders")
        assert (refused.status_code, kind(refused)) == (405, "method-not-allowed")
        assert refused.headers["allow"] == "POST, PUT, PATCH"
        unknown = client.post(f"{listening.url}/others", content=BODY, headers=headers(BODY))
        assert (unknown.status_code, kind(unknown)) == (404, "not-found")


def test_a_body_that_is_cut_short_delivers_nothing(server):
    service, listening = server
    assert raw(listening, request_head("Content-Length: 50") + BODY) == b""
    assert service.bodies() == []


def test_one_connection_carries_many_requests_also_after_a_refusal(server):
    _, listening = server
    connection = http.client.HTTPConnection(*listening.server_address, timeout=30)
    statuses = []
    for fence in (2, 1, 3):
        connection.request("POST", "/orders", BODY, headers(BODY, fence=fence))
        sock = connection.sock
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
        assert connection.sock is sock
    connection.close()
    assert statuses == [201, 412, 200]


def at_once(server, senders):
    """As many deliveries of one key as there are senders, all at once."""
    together = threading.Barrier(senders)

    def send(_):
        together.wait()
        return client.post(f"{server.url}/orders", content=BODY, headers=headers(BODY))

    with ThreadPoolExecutor(senders) as pool, plain_client() as client:
        return list(pool.map(send, range(senders)))


def test_twenty_senders_with_one_key_over_real_sockets_are_done_once(server):
    service, listening = server
    responses = at_once(listening, 20)
    statuses = [response.status_code for response in responses]
    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201, 409}
    assert len({response.content for response in responses if response.status_code != 409}) == 1
    assert service.bodies() == [BODY]


def test_twenty_replays_at_once_are_all_answered(server):
    service, listening = server
    at_once(listening, 1)
    assert {response.status_code for response in at_once(listening, 20)} == {200}
    assert service.bodies() == [BODY]


def test_keys_are_forgotten_only_a_day_after_the_declared_time(tmp_path):
    from fencepost.effects.receiver.storage import wall_ms

    service = Service(tmp_path / "receiver.db", keys_kept_s=3_600)
    for key in ("fp1-gone", "fp1-late"):
        service.receiver.deliver(headers(BODY, key=key).items(), BODY)
    ages_s = {"fp1-gone": 3_600 + 86_400 + 60, "fp1-late": 3_600 + 86_400 - 60}
    with service.inbox.connect() as connection:
        for key, age_s in ages_s.items():
            connection.execute(
                "UPDATE fencepost_received SET seen_at_ms = ? WHERE key = ?", (wall_ms() - age_s * 1_000, key)
            )
        connection.commit()
    again = Service(tmp_path / "receiver.db", keys_kept_s=3_600)
    again.receiver.deliver(headers(BODY).items(), BODY)
    statuses = [
        again.receiver.head("GET", f"{WELL_KNOWN}/{key}", []).status for key in ("fp1-gone", "fp1-late")
    ]
    assert statuses == [404, 200]
