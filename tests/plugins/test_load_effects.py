"""A program's own worker: effects are loaded by the public door, with settings, and closed at the end."""

import pytest
from fencepost.core import (
    EffectNotFound,
    NewJob,
    PluginError,
    Worker,
    WorkerOptions,
    load_effects,
    open_ledger,
)

from .conftest import pure

CLOSES = """
    closed = []

    @hookimpl
    def effect_info():
        return EffectInfo(name="greet", summary="s", settings={
            "greeting": Setting("What is said.", required=True), "times": Setting("How often.", default=1)})

    @hookimpl
    def effect_configure(settings):
        global given
        given = settings

    @hookimpl
    def effect_outcome(text):
        return {"says": f"{given['greeting']} {text} " * given["times"]}

    @hookimpl
    def effect_close():
        closed.append(True)
    """


def test_a_worker_of_a_program_does_the_jobs_of_the_effects_that_it_loads(site, tmp_path):
    site.module("shout", pure("shout"))
    with (
        open_ledger(str(tmp_path / "jobs.db")) as ledger,
        load_effects("shout", plugins=["shout"]) as effects,
    ):
        ledger.enqueue([NewJob("a", "x", effect="shout"), NewJob("b", "x")])
        events = []
        Worker(ledger, effects, WorkerOptions("me", max_jobs=10), on_event=events.append).run()
        assert [(event.id, event.state) for event in events] == [("a", "completed")]
        assert ledger.receipts(["a"])["a"].outcome == {"by": "shout", "text": "x"}


def test_settings_of_the_program_win_over_the_files_and_the_effect_is_closed(site, tmp_path):
    import sys

    site.module("greet", CLOSES)
    config = tmp_path / "fencepost.toml"
    config.write_text('[effects.greet]\ngreeting = "file"\ntimes = 2\n')
    options = {"config": str(config), "plugins": ["greet"]}
    with load_effects("greet", settings={"greet": {"greeting": "hello"}}, **options) as effects:
        assert effects["greet"].outcome("you") == {"says": "hello you hello you "}
        assert sys.modules["greet"].closed == []
    assert sys.modules["greet"].closed == [True]


def test_without_names_every_effect_that_has_its_settings_is_loaded(site):
    site.effect("shout")
    site.module("greet", CLOSES)
    with load_effects(plugins=["greet"]) as effects:
        assert {"count", "shout"} <= set(effects)
        assert not {"greet", "remote"} & set(effects)


def test_what_cannot_be_loaded_is_said(site):
    site.module("greet", CLOSES)
    with pytest.raises(EffectNotFound, match="there is no effect 'none'"), load_effects("none"):
        pass
    with (
        pytest.raises(PluginError, match="needs the setting greeting"),
        load_effects("greet", plugins=["greet"]),
    ):
        pass
    with (
        pytest.raises(PluginError, match=r"load_effects .*has no setting 'greetings'"),
        load_effects("greet", settings={"greet": {"greetings": "x"}}, plugins=["greet"]),
    ):
        pass
