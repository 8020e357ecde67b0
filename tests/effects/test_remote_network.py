"""The effect ``remote`` between a network that fails and settings that cannot work."""

import socket
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from fencepost.core import Hold, PluginError, Retry
from fencepost.plugins.manager import Plugins

from tests.effects.scripted import scripted
from tests.effects.sending import request

# -- The network --


@contextmanager
def listening(answer):
    """A bare socket whose connections ``answer(connection, request)`` deals with, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    answer(connection, connection.recv(65_536))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def declare(connection):
    body = b'{"fencepost_receiver":1,"keys_kept_s":null}'
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 201 Created\r\nContent-Length: 50\r\n\r\n{", b"what?\r\n\r\n"]
)
def test_an_answer_that_breaks_off_is_an_unknown_outcome_to_be_tried_again(choose, answer):
    def talk(connection, request):
        declare(connection) if request.startswith(b"GET") else connection.sendall(answer)

    with listening(talk) as url, pytest.raises(Retry, match="the outcome is not known"):
        choose(url=url).apply(request())


def test_an_answer_that_does_not_come_in_time_is_an_unknown_outcome(choose):
    done = threading.Event()

    def talk(connection, request):
        declare(connection) if request.startswith(b"GET") else done.wait(30)

    with listening(talk) as url:
        with pytest.raises(Retry, match="the outcome is not known"):
            choose(url=url, timeout_s=0.1).apply(request())
        done.set()


def test_an_answer_that_trickles_is_given_up(choose):
    done = threading.Event()

    def talk(connection, request):
        if request.startswith(b"GET"):
            declare(connection)
            return
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 50000\r\n\r\n")
        while not done.wait(0.01):
            try:
                connection.sendall(b" ")
            except OSError:
                return

    with listening(talk) as url:
        with pytest.raises(Retry, match=r"took longer than 0\.1 s"):
            choose(url=url, timeout_s=0.1).apply(request())
        done.set()


def test_an_answer_without_end_is_read_only_up_to_the_bound(choose):
    sent = []

    def talk(connection, request):
        if request.startswith(b"GET"):
            declare(connection)
            return
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 9999999999\r\n\r\n")
        while True:
            try:
                sent.append(connection.send(b"x" * 65_536))
            except OSError:
                return

    with listening(talk) as url, pytest.raises(Hold, match="at most 60,000 bytes"):
        choose(url=url).apply(request())
    assert sum(sent) < 100_000_000


def test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_said(receiver, choose):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "certificates" / "self-signed.pem")
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    with pytest.raises(Retry, match=r"not sent, no connection.*[Cc][Ee][Rr][Tt]"):
        choose(url=receiver.url.replace("http:", "https:")).apply(request())
    assert receiver.seen == []


# -- Settings --


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"url": "ftp://host/"}, "must begin with https"),
        ({"url": "https://"}, "must begin with https"),
        ({"url": "orders"}, "must begin with https"),
        ({"url": "https://host:port/"}, "port"),
        ({"url": "https://host/?a=b"}, "no query"),
        ({"url": "https://user:secret@host/"}, "no query, fragment, user"),
        ({"url": "http://receiver.example/"}, "no TLS"),
        ({"url": "http://127.0.0.1.example/"}, "no TLS"),
        ({"method": "GET"}, "method 'GET' must be"),
        ({"body": "xml"}, "body 'xml' must be"),
        ({"headers": {"Idempotency-Key": "mine"}}, "set by the effect itself"),
        ({"headers": {"X": 5}}, "a string of visible ASCII"),
        ({"headers": {"X": "a\r\nY: b"}}, "a string of visible ASCII"),
        ({"headers": {"X Y": "a"}}, "a plain name"),
        ({"token": "a-token\nof two lines"}, "visible ASCII"),
        ({"timeout_s": 0.0}, "more than 0"),
        ({"connect_timeout_s": float("inf")}, "more than 0"),
        ({"max_body_bytes": 0}, "more than 0"),
        ({"namespace": " "}, "namespace must be"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(choose, settings, says):
    with pytest.raises(PluginError, match=says):
        choose(**settings)


def test_plain_http_to_another_machine_can_be_allowed(choose):
    choose(url="http://receiver.example/", plain_http=True)


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.9.9.9:1", "http://[::1]:1"])
def test_this_machine_needs_no_tls(choose, url):
    choose(url=url)


def test_url_and_namespace_are_required(receiver):
    for settings in ({"url": receiver.url}, {"namespace": "test"}):
        with pytest.raises(PluginError, match="needs the setting"):
            Plugins.load(entry_points=False).choose("remote", settings)


def test_two_uses_in_one_process_keep_their_own_settings(receiver, choose):
    with scripted() as other:
        one, two = choose(), choose(url=other.url)
        one.apply(request())
        two.apply(request())
        assert len(receiver.deliveries()) == len(other.deliveries()) == 1


# -- What it costs those who do not use it --


def test_httpx_is_only_imported_where_the_effect_is_set_up():
    source = """
import sys
from fencepost.plugins.manager import Plugins
plugins = Plugins.load(entry_points=False)
assert plugins.find("remote").info.name == "remote"
assert not {"httpx", "asyncio", "fencepost.effects.receiver"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)


def test_without_httpx_it_says_what_to_install(monkeypatch, choose):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(PluginError, match=r"pip install 'fencepost\[http\]'"):
        choose()
