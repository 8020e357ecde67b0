"""The crash kit finds faults as authors make them, and says what to do; their sound twins pass."""

import http.server
import threading
from pathlib import Path

import pytest
from fencepost.plugins.testing import CrashKitError, EffectCase

SUBJECTS = Path(__file__).parent / "subjects"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Makes the case of an effect in subjects/planted.py."""
    monkeypatch.syspath_prepend(SUBJECTS)
    import good

    world, kit = tmp_path / "world.db", tmp_path / "kit"
    kit.mkdir()
    good.open_world(str(world)).close()

    def make(effect, *, module="planted", wrapper=None, **options):
        options.setdefault("settings", {"world": str(world)})
        options.setdefault("observed", lambda: good.count_done(world))
        plugins = [f"{module}:{effect.replace('-', '_').removeprefix('good_')}"]
        if wrapper is not None:
            plugins.append(f"planted:around_{wrapper}")
        return EffectCase(effect, kit, plugins=plugins, **options)

    return make


@pytest.fixture
def receiver():
    """A receiver over HTTP that honours keys; its URL, and how often it has done something."""
    done = []
    known = {}
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                if self.headers["Key"] not in known:
                    known[self.headers["Key"]] = b'{"answer": "done"}'
                    done.append(self.headers["Key"])
            self.send_response(200)
            self.send_header("Content-Length", "18")
            self.end_headers()
            self.wfile.write(known[self.headers["Key"]])

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", lambda: len(done)
        server.shutdown()
        thread.join()


FAULTS = [
    ("heartbeats", "two-at-once", "request.heartbeat() raised LeaseLost, and the effect went on"),
    ("on-time-out", "fails-inside", "The error was taken for a success"),
    ("marked", "fails-inside", "The error was taken for a success"),
    ("catches-all", "fails-inside", "The error was taken for a success"),
    ("rejects-time-out", "fails-inside", "Raise Reject only for what the receiver has refused for good"),
    ("remembers", "two-jobs", "Something of one job is kept in memory and used for another one"),
    ("mixes-up", "two-jobs", "Something of one job is kept in memory and used for another one"),
    ("shares-the-key", "two-jobs", "Something of one job is kept in memory and used for another one"),
    ("key-of-the-id", "other-namespace", "send request.idempotency_key as it is"),
    ("charges", "fails-inside", "Raise Retry only where it is certain that nothing was done"),
    ("checks-then-inserts", "two-at-once", "the outside world saw it twice instead of once"),
    ("first-attempt", "redriven", "the outside world saw it twice instead of once"),
    ("stops-silently", "lease-ended", "the outside world never saw it"),
    ("in-the-background", "after-effect", "do nothing in a thread that goes on afterwards"),
    ("asks", "fails-inside", "effect_reconcile said NotApplied although it was applied"),
    ("own-errors", "fails-inside", "Raise Retry only where it is certain that nothing was done"),
]


@pytest.mark.parametrize(("effect", "point", "says"), FAULTS)
def test_a_planted_fault_is_found_and_its_sound_twin_passes_there(planted, effect, point, says):
    with pytest.raises(CrashKitError) as found:
        planted(f"faulty-{effect}").check(point)
    assert says in str(found.value)
    planted(f"sound-{effect}").check(point)


def test_a_sound_twin_passes_every_point(planted):
    planted("sound-asks").check()


def test_a_local_effect_may_say_something_else_each_time(planted):
    planted("sound-varies").check("two-at-once", "stale-after", "two-jobs")


def test_a_network_that_fails_is_played_without_a_mark(planted, receiver, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    url, done = receiver
    with pytest.raises(CrashKitError, match="The error was taken for a success"):
        planted("faulty-over-http", settings={"world": url}, observed=done).check("fails-inside")
    planted("sound-over-http", settings={"world": url}, observed=done).check("fails-inside")


@pytest.mark.parametrize(
    ("wrapper", "effect", "point", "says"),
    [
        ("swallows", "good-keyed", "passed-on", "a wrapper made an outcome of it"),
        ("hides", "good-keyed", "passed-on", "a wrapper hid what it said"),
        ("retries", "good-once", "timed-out", "Raise Retry only where it is certain that nothing was done"),
        ("retries", "good-once", "passed-on", "a wrapper turned it into something else"),
    ],
)
def test_middleware_that_breaks_an_effects_promise_is_found(planted, wrapper, effect, point, says):
    with pytest.raises(CrashKitError) as found:
        planted(effect, module="good", wrapper=wrapper).check(point)
    assert says in str(found.value)


@pytest.mark.parametrize("effect", ["good-keyed", "good-once"])
def test_middleware_that_passes_on_what_it_gets_passes(planted, effect):
    planted(effect, module="good", wrapper="notes").check("passed-on", "timed-out")
