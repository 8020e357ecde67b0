"""Observers are told everything, and can break nothing."""

import inspect
import logging
import signal

import pytest
from fencepost.core.errors import LeaseLost
from fencepost.core.ledgers.open import open_ledger
from fencepost.core.model.inputs import text_sha256
from fencepost.core.worker.options import WorkerOptions
from fencepost.core.worker.worker import Worker
from fencepost.plugins import (
    Job,
    NewJob,
    Receipt,
    hookspecs,
)
from fencepost.plugins.manager import Plugins
from fencepost.plugins.observers import Observers
from fencepost.plugins.rules import OBSERVERS

JOB = Job("a", state="running", version=3, attempts=2)
EVENTS = {
    "job_enqueued": {"job": NewJob("a", "text"), "created": True},
    "job_claimed": {"job": JOB},
    "job_completed": {"job": JOB, "receipt": Receipt("a", "0", {}), "reused": False},
    "job_retried": {"job": JOB, "error": "no", "run_at_ms": 7},
    "job_dead": {"job": JOB, "error": "no"},
    "job_held": {"job": JOB, "error": "no"},
    "job_lost": {"job": JOB},
    "worker_started": {"claimant": "w", "store": "/s", "effects": ("count",)},
    "worker_stopped": {"claimant": "w", "store": "/s", "error": None},
}

RECORDER = "told = []\n" + "\n".join(
    f"@hookimpl\ndef {hook}({', '.join(what)}): told.append(({hook!r}, {', '.join(what)}))"
    for hook, what in EVENTS.items()
)


def tell_all(observers):
    for hook, what in EVENTS.items():
        getattr(observers, hook)(**what)


def told(plugins, name):
    return next(one.plugin.told for one in plugins.all() if one.found.name == name)


def test_every_observer_hook_is_told(site):
    site.effect("recorder", source=RECORDER)
    plugins = Plugins.load()
    tell_all(plugins.observers)
    assert told(plugins, "recorder") == [(hook, *what.values()) for hook, what in EVENTS.items()]


def test_there_is_a_method_for_each_observer_hook_with_its_arguments():
    assert set(EVENTS) == set(OBSERVERS)
    for hook in OBSERVERS:
        mine = list(inspect.signature(getattr(Observers, hook)).parameters.values())[1:]
        assert mine == list(inspect.signature(getattr(hookspecs, hook)).parameters.values())


def test_an_observer_takes_the_arguments_that_it_wants(load_source):
    plugins = load_source("told = []\n@hookimpl\ndef job_dead(error): told.append(error)")
    tell_all(plugins.observers)
    assert told(plugins, "local_plugin") == ["no"]


def test_an_observer_that_raises_is_logged_and_the_others_are_told(site, caplog):
    site.effect("a-bad", source=RECORDER.replace("told.append(", "str(").replace("str((", "print(1 / 0, ("))
    site.effect("b-good", source=RECORDER)
    plugins = Plugins.load()
    tell_all(plugins.observers)
    assert len(told(plugins, "b-good")) == len(EVENTS)
    assert [record.getMessage() for record in caplog.records] == [
        f"the plugin 'a-bad' failed in {hook}; the job goes on" for hook in EVENTS
    ]
    assert all(record.exc_info[0] is ZeroDivisionError for record in caplog.records)


def test_a_person_who_presses_ctrl_c_while_an_observer_runs_ends_the_program(load_source):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    plugins = load_source("import signal\n@hookimpl\ndef job_dead(): signal.raise_signal(signal.SIGINT)")
    with pytest.raises(KeyboardInterrupt):
        plugins.observers.job_dead(JOB, "no")


@pytest.mark.parametrize(
    "ending",
    [
        "sys.exit(0)",
        "raise asyncio.CancelledError",
        "raise GeneratorExit",
        "raise BaseExceptionGroup('two', [SystemExit(1), KeyboardInterrupt()])",
        "raise Unreadable",
    ],
)
def test_an_observer_never_ends_the_worker_and_the_next_one_is_told(site, caplog, ending):
    unreadable = "class Unreadable(BaseException):\n    def __str__(self): raise SystemExit('no words')\n"
    site.effect(
        "a-bad", source=f"import asyncio, sys\n{unreadable}\n@hookimpl\ndef job_dead():\n    {ending}\n"
    )
    site.effect("b-good", source=RECORDER)
    plugins = Plugins.load()
    with plugins.redactor.cleaning_logs():
        plugins.redactor.learn(["a secret of many letters"])
        plugins.observers.job_dead(JOB, "no")
    assert "failed in job_dead" in caplog.text
    assert len(told(plugins, "b-good")) == 1


def test_an_observer_s_own_interrupt_is_its_fault_where_sigint_stops_the_worker(load_source, caplog):
    plugins = load_source("@hookimpl\ndef job_dead(): raise KeyboardInterrupt")
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        plugins.observers.job_dead(JOB, "no")
    finally:
        signal.signal(signal.SIGINT, before)
    assert "failed in job_dead" in caplog.text


def test_an_effects_plugin_may_observe_too(site):
    from .conftest import pure

    observer = "told = []\n@hookimpl\ndef job_claimed(job): told.append(job.id)\n"
    site.effect("both", source=pure("both") + observer)
    plugins = Plugins.load()
    plugins.observers.job_claimed(JOB)
    assert told(plugins, "both") == ["a"]


def test_broken_and_blocked_plugins_are_not_told(site):
    site.effect("recorder", source=RECORDER + "\n@hookimpl\ndef job_ded(): pass")
    assert not any(Plugins.load().observers._told.values())
    site.effect("second", source=RECORDER)
    assert not any(Plugins.load(blocked=["second"]).observers._told.values())


def test_nobody_to_tell_is_no_error():
    tell_all(Plugins.load(entry_points=False).observers)


def test_the_log_ships_and_says_every_event_in_a_line(caplog):
    caplog.set_level(logging.INFO, "fencepost.jobs")
    observers = Plugins.load(modules=["log"], entry_points=False).observers
    tell_all(observers)
    observers.job_enqueued(NewJob("a", "text"), False)
    observers.job_completed(JOB, Receipt("a", "0", {}), True)
    observers.worker_stopped("w", "/s", "no ledger")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "a enqueued for count"),
        ("INFO", "a claimed: attempt 2, fence 3"),
        ("INFO", "a completed"),
        ("WARNING", "a failed in attempt 2, again at 7 ms: no"),
        ("ERROR", "a is dead after attempt 2: no"),
        ("ERROR", "a is held for an operator: no"),
        ("WARNING", "a: the claim with fence 3 is lost"),
        ("INFO", "worker w started on /s for count"),
        ("INFO", "worker w stopped"),
        ("INFO", "a enqueued for count (was there already)"),
        ("INFO", "a completed with the receipt that was there"),
        ("ERROR", "worker w stopped: no ledger"),
    ]


MOODS = """
    @hookimpl
    def effect_info():
        return EffectInfo(name="moods", summary="Does as the text says.")

    @hookimpl
    def effect_apply(request):
        if request.text == "retry":
            raise Retry("not now", after_s=5)
        if request.text == "reject":
            raise Reject("not ever")
        if request.text == "hold":
            raise Hold("who knows")
        if request.text == "lose":
            meanwhile()
        return {}
    """


def test_a_real_worker_tells_every_event_once(site, tmp_path):
    site.effect("recorder", source=RECORDER)
    site.effect("moods", source=MOODS)
    plugins = Plugins.load()
    texts = {"a": "apply", "b": "retry", "c": "reject", "d": "hold", "e": "lose"}

    with open_ledger(tmp_path / "jobs") as ledger:
        ledger.enqueue([NewJob(id, text, effect="moods") for id, text in texts.items()], now_ms=1_000)
        plugins.find("moods").plugin.meanwhile = lambda: ledger.cancel("e", now_ms=1_000)
        options = WorkerOptions(claimant="w", max_jobs=len(texts), now_ms=1_000)
        effects = {"moods": plugins.choose("moods")}
        worker = Worker(ledger, effects, options, observers=plugins.observers)
        with pytest.raises(LeaseLost):
            worker.run()

    events = told(plugins, "recorder")
    assert events[0] == ("worker_started", "w", str(tmp_path / "jobs"), ("moods",))
    assert events[-1][:3] == ("worker_stopped", "w", str(tmp_path / "jobs"))
    assert "the lease of job 'e' was lost" in events[-1][3]
    assert {(event[0], event[1].id, event[1].version) for event in events if event[0] == "job_claimed"} == {
        ("job_claimed", id, 1) for id in texts
    }
    assert [(event[0], event[1].id, *event[2:]) for event in events[1:-1] if event[0] != "job_claimed"] == [
        ("job_completed", "a", Receipt("a", text_sha256("apply"), {}, "moods", "1"), False),
        ("job_retried", "b", "not now", 6_000),
        ("job_dead", "c", "not ever"),
        ("job_held", "d", "who knows"),
        ("job_lost", "e"),
    ]
