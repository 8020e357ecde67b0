"""The rules at load: each is broken once, and the error says what to write instead."""

import pytest
from fencepost.core.errors import PluginError

INFO = "@hookimpl\ndef effect_info(): return EffectInfo(name='x', summary='s'{more})\n"
OUTCOME = "@hookimpl\ndef effect_outcome(text): return {}\n"
APPLY = "@hookimpl\ndef effect_apply(request): return {}\n"
RECONCILE = "@hookimpl\ndef effect_reconcile(request): return NotApplied()\n"


def info(more: str = "") -> str:
    return INFO.format(more=f", {more}" if more else "")


@pytest.mark.parametrize(
    "source",
    [
        info() + OUTCOME,
        info() + APPLY,
        info("delivery='once'") + APPLY,
        info("delivery='keyed', receiver_key='the Idempotency-Key header'") + APPLY,
        info("delivery='keyed', receiver_key='the column key'") + APPLY + RECONCILE,
        info("delivery='probed'") + APPLY + RECONCILE,
        info("settings={'url': Setting('Where.', required=True)}") + APPLY,
        "FENCEPOST_API = (1, 1)\n" + info() + OUTCOME,
        "@hookimpl\ndef job_dead(job, error): pass",
        "@hookimpl(wrapper=True)\ndef effect_apply(request, info): return (yield)",
        "@hookimpl(specname='job_dead')\ndef mourn(job): pass",
    ],
)
def test_what_keeps_the_rules_is_loaded(load_source, source):
    [one] = [one for one in load_source(source).all() if one.found.name == "local_plugin"]
    assert (one.state, one.reason) == ("loaded", "")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        # what a plugin is
        ("x = 1", "implements no hook: put @hookimpl above"),
        (
            info() + OUTCOME.replace("@hookimpl\n", ""),
            "effect_outcome is not marked as a hook: put @hookimpl above it",
        ),
        (info() + OUTCOME.replace("outcome", "outcom"), "no hook 'effect_outcom'; 'effect_outcome' is near"),
        (
            info() + OUTCOME + "@hookimpl\ndef banana(): pass",
            "no hook 'banana'; docs/reference/hooks.md lists them",
        ),
        (OUTCOME, "implements effect_outcome but not effect_info"),
        (info() + "@hookimpl\nasync def effect_apply(request): return {}", "effect_apply is async"),
        (info() + "@hookimpl\ndef effect_apply(request): yield", "effect_apply is a generator"),
        (info() + OUTCOME.replace("text", "words"), "Argument(s) {'words'} are declared in the hookimpl"),
        ("@hookimpl(wrapper=True)\ndef job_dead(job): yield", "job_dead cannot be wrapped"),
        ("@hookimpl(wrapper=True)\ndef effect_apply(request): return {}", "not a generator function"),
        # what an effect declares
        (info().replace("return EffectInfo", "return str"), "effect_info failed: TypeError"),
        ("@hookimpl\ndef effect_info(): pass\n" + OUTCOME, "effect_info returned None; return an EffectInfo"),
        ("@hookimpl\ndef effect_info(): 1 / 0\n" + OUTCOME, "effect_info failed: ZeroDivisionError"),
        (info().replace("'x'", "'X y'") + OUTCOME, "name 'X y' must match [a-z][a-z0-9-]{0,63}"),
        (info().replace("'s'", "' '") + OUTCOME, "summary is ' '; it must be a text"),
        (info("version=2") + OUTCOME, "version is 2; it must be a text"),
        (
            info("delivery='twice'") + APPLY,
            "delivery is 'twice'; it must be one of local, keyed, probed, once",
        ),
        (info() + OUTCOME + APPLY, "both effect_outcome and effect_apply"),
        (info(), "neither effect_outcome (for an effect that only computes) nor effect_apply"),
        # how it may be repeated
        (info("delivery='once'") + OUTCOME, "effect_outcome is for pure effects"),
        (info("delivery='keyed'") + APPLY, "'keyed' needs receiver_key"),
        (info("delivery='keyed', receiver_key=' '") + APPLY, "'keyed' needs receiver_key"),
        (info("delivery='probed'") + APPLY, "'probed' needs effect_reconcile"),
        (info() + APPLY + RECONCILE, "'local' never asks effect_reconcile"),
        (info("delivery='once'") + APPLY + RECONCILE, "'once' never asks effect_reconcile"),
        # settings
        (info("settings=[]") + APPLY, "settings are a list; they must be a dict of Setting"),
        (
            info("settings={'a b': Setting('h')}") + APPLY,
            "the setting 'a b' must be named like a Python variable",
        ),
        (info("settings={'url': 'http'}") + APPLY, "the setting 'url' is a str; it must be a Setting"),
        (
            info("settings={'n': Setting('h', required=True, default=1)}") + APPLY,
            "is required and has a default",
        ),
        (info("settings={'namespace': Setting('h', default='x')}") + APPLY, "it can have no default"),
        (info("settings={'namespace': Setting('h')}") + OUTCOME, "a pure effect has none"),
        # which interface it was written for
        (
            "FENCEPOST_API = (2, 3)\n" + info() + OUTCOME,
            "needs plugin API 2 or later, and this fencepost has 1",
        ),
        ("FENCEPOST_API = (0, 0)\n" + info() + OUTCOME, "written for plugin API 0 or earlier"),
        ("FENCEPOST_API = '1'\n" + info() + OUTCOME, "must be two whole numbers"),
        # importing it
        ("import nothing_of_that_name", "importing it failed: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "importing it failed: SystemExit: 3"),
        ("def broken(:", "importing it failed: SyntaxError"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_a_remedy(load_source, source, says):
    with pytest.raises(PluginError, match="--plugin local_plugin: ") as refused:
        load_source(source)
    assert says in str(refused.value)


def test_an_instance_can_be_a_plugin_and_keep_its_own_state(site):
    from fencepost.plugins.manager import Plugins

    site.module(
        "instances",
        """
        from dataclasses import dataclass

        @dataclass
        class Prefix:
            name: str
            prefix: str = ""

            @property
            def surprise(self):
                raise RuntimeError("properties are not read")

            @hookimpl
            def effect_info(self):
                return EffectInfo(name=self.name, summary="s", settings={"prefix": Setting("p", default=">")})

            @hookimpl
            def effect_configure(self, settings):
                self.prefix = settings["prefix"]

            @hookimpl
            def effect_outcome(self, text):
                return {"text": self.prefix + text}

        one, two = Prefix("one"), Prefix("two")
        """,
    )
    plugins = Plugins.load(modules=["instances:one", "instances:two"], entry_points=False)
    one, two = plugins.choose("one", {"prefix": "1"}), plugins.choose("two", {"prefix": "2"})
    assert (one.outcome("x"), two.outcome("x")) == ({"text": "1x"}, {"text": "2x"})
    with pytest.raises(PluginError, match=r"it is the class Prefix; .* name Prefix\(\)"):
        Plugins.load(modules=["instances:Prefix"], entry_points=False)


def test_what_has_every_attribute_is_no_plugin(load_source):
    with pytest.raises(PluginError, match="it implements no hook"):
        load_source("import sys, unittest.mock\nsys.modules[__name__] = unittest.mock.MagicMock()")
