"""Wrappers of other plugins apply around every effect; an effect's own wrappers only around itself."""

import logging
from textwrap import dedent

import pytest
from fencepost.core.errors import EffectNotFound, InvalidInput, PluginError
from fencepost.plugins.manager import Plugins

from .conftest import pure
from .test_settings import request


def sign(name):
    """The source of middleware that signs every outcome."""
    return dedent(f"""
        @hookimpl(wrapper=True)
        def effect_outcome(text, info):
            outcome = yield
            return outcome | {{"seen": [*outcome.get("seen", []), "{name} " + info.name]}}
        """)


def test_middleware_wraps_every_effect_and_knows_which(site):
    site.effect("one")
    site.effect("two")
    site.effect("around", source=sign("around"))
    plugins = Plugins.load()
    assert plugins.choose("one").outcome("x") == {"by": "one", "text": "x", "seen": ["around one"]}
    assert plugins.choose("two").outcome("x") == {"by": "two", "text": "x", "seen": ["around two"]}
    assert plugins.choose("count").outcome("x") == {"bytes": 1, "words": 1, "seen": ["around count"]}


def test_what_is_named_last_is_outermost(site):
    site.effect("installed", source=sign("installed"))
    site.module("first", sign("first"))
    site.module("second", sign("second"))
    plugins = Plugins.load(modules=["first", "second"])
    assert plugins.choose("count").outcome("x")["seen"] == ["installed count", "first count", "second count"]


def test_a_wrapper_in_an_effects_own_plugin_stays_there(site):
    around = sign("own").replace("def effect_outcome", "def around")
    around = around.replace("wrapper=True", "wrapper=True, specname='effect_outcome'")
    site.effect("own", source=pure("own") + around)
    plugins = Plugins.load()
    assert plugins.choose("own").outcome("x")["seen"] == ["own own"]
    assert plugins.choose("count").outcome("x") == {"bytes": 1, "words": 1}


def test_middleware_that_is_blocked_or_broken_wraps_nothing(site):
    site.effect("around", source=sign("around"))
    site.effect("wrong", source=sign("wrong").replace("text, info", "text, info, more"))
    assert Plugins.load(blocked=["around"]).choose("count").outcome("x") == {"bytes": 1, "words": 1}


def test_middleware_can_wrap_validation_and_the_acting_hooks(site):
    site.effect(
        "around",
        source="""
        @hookimpl(wrapper=True)
        def effect_validate(text, info):
            if text == "forbidden":
                raise InvalidInput(f"not for {info.name}")
            return (yield)

        @hookimpl(wrapper=True)
        def effect_apply(request, info):
            try:
                return (yield)
            except KeyError as error:
                raise Retry("the wrapper knows better", after_s=3) from error
        """,
    )
    site.effect(
        "act",
        source="""
        @hookimpl
        def effect_info():
            return EffectInfo(name="act", summary="s")

        @hookimpl
        def effect_apply(request):
            return {"n": {"a": 1}[request.text]}
        """,
    )
    from fencepost.plugins import InvalidInput, Retry

    act = Plugins.load().choose("act")
    act.validate("fine")
    with pytest.raises(InvalidInput, match="not for act"):
        act.validate("forbidden")
    assert act.apply(request("a")) == {"n": 1}
    with pytest.raises(Retry, match="knows better"):
        act.apply(request("b"))


def test_timing_ships_and_logs_only_where_it_is_asked_for(site, caplog):
    caplog.set_level(logging.INFO, "fencepost.timing")
    Plugins.load().choose("count").outcome("one two")
    assert caplog.messages == []
    Plugins.load(modules=["timing"]).choose("count").outcome("one two")
    [message] = caplog.messages
    assert message.startswith("count took ")
    assert message.endswith(" ms (7 characters)")


def test_timing_logs_an_attempt_that_fails_too(site, caplog):
    site.effect(
        "fails",
        source="""
        @hookimpl
        def effect_info():
            return EffectInfo(name="fails", summary="s")

        @hookimpl
        def effect_apply(request):
            raise KeyError("no")
        """,
    )
    caplog.set_level(logging.INFO, "fencepost.timing")
    with pytest.raises(KeyError):
        Plugins.load(modules=["timing"]).choose("fails").apply(request("x"))
    assert caplog.messages[0].endswith(" ms (job a, attempt 1)")


# -- Settings, and another text --

ROT = """
    import codecs
    closed = []

    @hookimpl
    def effect_info():
        return EffectInfo(name="rot", summary="Reads texts that are turned by 13.", settings={
            "prefix": Setting("What such a text begins with.", required=True),
            "key": Setting("A key.", secret=True, env="ROT_KEY")})

    @hookimpl
    def effect_configure(settings):
        global given
        given = settings

    @hookimpl
    def effect_text(text, info):
        prefix = given["prefix"]
        return codecs.decode(text.removeprefix(prefix), "rot13") if text.startswith(prefix) else text

    @hookimpl
    def effect_close():
        closed.append(True)
    """
ACTS = """
    @hookimpl
    def effect_info():
        return EffectInfo(name="act", summary="s")

    @hookimpl
    def effect_validate(text):
        if text != "hello":
            raise ValueError(f"not {text}")

    @hookimpl
    def effect_apply(request):
        return {"text": request.text, "digest": request.input_sha256, "key": request.idempotency_key}
    """


@pytest.fixture
def rot(site, monkeypatch):
    monkeypatch.setenv("ROT_KEY", "a-long-secret-key")
    site.effect("rot", source=ROT)
    site.effect("act", source=ACTS)
    site.effect("one")
    return lambda **settings: Plugins.load(settings={"rot": {"prefix": "rot:"} | settings})


def test_middleware_changes_the_text_that_the_effect_sees_and_neither_digest_nor_key(rot):
    act = rot().choose("act")
    plain = request("rot:uryyb")
    digest, key = plain.input_sha256, plain.idempotency_key
    assert act.apply(request("rot:uryyb")) == {"text": "hello", "digest": digest, "key": key}
    act.validate("rot:uryyb")
    with pytest.raises(InvalidInput, match="not uryyb"):
        act.validate("uryyb")
    assert rot().choose("one").outcome("rot:uryyb") == {"by": "one", "text": "hello"}


def test_a_text_is_changed_once_however_often_a_request_is_used(rot):
    act, again = rot(prefix="").choose("act"), request("uryyb")
    assert [act.apply(again)["text"], act.apply(again)["text"]] == ["hello", "hello"]


def test_middleware_is_configured_once_and_closed_after_the_effects(rot):
    import sys

    plugins = rot()
    plugins.choose("one")
    plugins.choose("act")
    assert plugins.redactor.text("a-long-secret-key") == "***"
    assert sys.modules["plugin_rot"].closed == []
    plugins.close()
    plugins.close()
    assert sys.modules["plugin_rot"].closed == [True]


def test_no_effect_runs_without_the_middleware_that_lacks_a_setting(rot):
    with pytest.raises(
        PluginError, match=r"the middleware 'rot' needs the setting prefix: .*\[effects.rot\]"
    ):
        Plugins.load().choose("one")
    with pytest.raises(
        PluginError, match="the middleware 'rot' has no setting 'prefx'; its settings are: key, prefix"
    ):
        Plugins.load(settings={"rot": {"prefx": "x"}}).choose("one")


def test_middleware_with_settings_is_no_effect(rot):
    plugins = rot()
    assert "rot" not in plugins.effect_names()
    assert plugins.has("rot")
    with pytest.raises(EffectNotFound, match="no effect 'rot'"):
        plugins.choose("rot")


def test_the_outermost_is_asked_for_the_text_first(site):
    for name in ("inner", "outer"):
        site.module(
            name,
            f"""
            @hookimpl
            def effect_text(text, info):
                return text + " {name}"
            """,
        )
    plugins = Plugins.load(modules=["inner", "outer"])
    assert plugins.choose("count").outcome("x") == {"bytes": len("x outer inner"), "words": 3}


def test_a_text_that_is_none_is_refused(site):
    site.module(
        "around",
        """
        @hookimpl
        def effect_text(text, info):
            return 7
        """,
    )
    effect = Plugins.load(modules=["around"]).choose("count")
    with pytest.raises(PluginError, match="effect_text returned int; it must return a text"):
        effect.outcome("x")
