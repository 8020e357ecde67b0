"""Loading: every plugin for itself, nothing that is blocked, and no effect answering for another."""

import os
import shutil
import subprocess
import sys

import pytest
from fencepost.core.errors import EffectNotFound, PluginError
from fencepost.plugins.discovery import BUILTINS, OPTIONAL
from fencepost.plugins.manager import Plugins

from .conftest import Site, pure


def others(plugins):
    """The effects that can be chosen and do not ship."""
    return [name for name in plugins.effect_names() if name not in BUILTINS]


def state(plugins, name):
    [one] = [one for one in plugins.all() if one.found.name == name]
    return one.state, one.reason


def test_an_installed_effect_is_found_by_its_entry_point(site):
    site.effect("greet")
    plugins = Plugins.load()
    assert others(plugins) == ["greet"]
    assert [name for name in plugins.effect_names() if name not in BUILTINS] == ["greet"]
    assert plugins.choose("greet").outcome("hi") == {"by": "greet", "text": "hi"}


def test_the_entry_point_need_not_be_named_like_the_effect(site):
    site.module("other", pure("greet"))
    site.install("fencepost-other", {"something_else": "other"})
    assert Plugins.load().choose("greet").outcome("hi")["by"] == "greet"


def test_each_effect_answers_only_for_itself(site):
    names = ["one", "two", "three"]
    for name in names:
        site.effect(name)
    plugins = Plugins.load()
    effects = {name: plugins.choose(name) for name in names}
    assert [effects[name].outcome("x")["by"] for name in names] == names
    assert plugins.choose("count").outcome("x") == {"bytes": 1, "words": 1}


@pytest.mark.parametrize(
    "source",
    ["raise RuntimeError('no')", "import sys; sys.exit(1)", "import nothing_like_it", "def (", "x = 1"],
)
def test_a_broken_plugin_harms_only_the_jobs_that_name_it(site, source):
    site.effect("good")
    site.effect("bad", source=source)
    plugins = Plugins.load()
    assert others(plugins) == ["good"]
    assert plugins.choose("good").outcome("x")["by"] == "good"
    assert state(plugins, "bad")[0] == "broken"
    with pytest.raises(
        PluginError, match="'bad' cannot be used, its plugin 'bad' of fencepost-bad is broken: "
    ):
        plugins.choose("bad")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("entry_points.txt", b"[fencepost]\nnonsense"),
        ("METADATA", b""),
        ("entry_points.txt", b"\xff\xfe[fencepost]"),
    ],
)
def test_metadata_that_cannot_be_read_harms_nobody_else(site, file, content):
    site.effect("good")
    site.effect("bad")
    (site.folder / "fencepost_bad-1.0.dist-info" / file).write_bytes(content)
    plugins = Plugins.load()
    assert plugins.choose("good").outcome("x")["by"] == "good"


def test_a_blocked_plugin_is_never_imported(site, tmp_path):
    mark = tmp_path / "imported"
    site.effect("spy", source=f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n")
    for options in (
        {"blocked": ["spy"]},
        {"blocked": ["fencepost-spy"]},
        {"blocked": ["fencepost_spy"]},
        {"blocked": ["all"]},
        {"environ": {"FENCEPOST_NO_PLUGINS": "other, spy"}},
        {"environ": {"FENCEPOST_NO_PLUGINS": "all"}},
    ):
        plugins = Plugins.load(**options)
        assert others(plugins) == []
        assert not mark.exists()
    Plugins.load(blocked=["another"])
    assert mark.exists()


def test_a_blocked_plugin_is_told_apart_from_one_that_is_not_there(site):
    site.effect("greet")
    plugins = Plugins.load(blocked=["greet"])
    assert state(plugins, "greet") == ("blocked", "by --no-plugin or FENCEPOST_NO_PLUGINS")
    with pytest.raises(PluginError, match="'greet' is blocked by --no-plugin or FENCEPOST_NO_PLUGINS"):
        plugins.choose("greet")
    with pytest.raises(EffectNotFound, match=r"no effect 'none'; installed are: .*count"):
        plugins.choose("none")


def test_what_ships_can_be_blocked_by_name_but_not_by_all():
    assert Plugins.load(blocked=["all"]).effect_names() == sorted(BUILTINS)
    plugins = Plugins.load(blocked=["count"])
    assert "count" not in plugins.effect_names()
    with pytest.raises(PluginError, match="'count' is blocked"):
        plugins.choose("count")


def test_two_plugins_with_one_effect_name_are_both_refused_until_one_is_blocked(site):
    site.effect("greet", distribution="fencepost-greet")
    site.module("again", pure("greet"))
    site.install("fencepost-again", {"salute": "again"})
    plugins = Plugins.load()
    assert others(plugins) == []
    assert state(plugins, "salute") == (
        "broken",
        "the effect name 'greet' is taken by 'greet' of fencepost-greet too: block one with --no-plugin",
    )
    with pytest.raises(PluginError, match="the effect name 'greet' is taken by"):
        plugins.choose("greet")
    assert others(Plugins.load(blocked=["fencepost-again"])) == ["greet"]


def test_nobody_takes_the_name_of_an_effect_that_ships(site):
    site.effect("mine", source=pure("count"))
    plugins = Plugins.load()
    assert "taken by fencepost itself" in state(plugins, "mine")[1]
    assert plugins.choose("count").outcome("x") == {"bytes": 1, "words": 1}


def test_a_local_file_is_a_plugin_without_packaging(site, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "mine.py").write_text(site.module("mine_source", pure("mine")).read_text())
    for name in ("mine", "mine.py", "./mine.py", str(folder / "mine.py")):
        plugins = Plugins.load(modules=[name], entry_points=False, folder=folder)
        assert plugins.choose("mine").outcome("x")["by"] == "mine"
        sys.modules.pop("mine", None)


OBJECT = """
class Mine:
    @hookimpl
    def effect_info(self):
        return EffectInfo(name="mine", summary="s")

    @hookimpl
    def effect_outcome(self, text):
        return {"by": "object"}
"""


def test_a_plugin_may_be_an_object_in_a_file(site, tmp_path):
    site.module("fx", OBJECT + "\nplugin = Mine()\n")
    for name in ("fx.py:plugin", "./fx.py:plugin", f"{site.folder}/fx.py:plugin"):
        plugins = Plugins.load(modules=[name], entry_points=False, folder=site.folder)
        assert plugins.choose("mine").outcome("x") == {"by": "object"}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (OBJECT + "\nplugin = Mine()\n", "its object plugin does: name fx.py:plugin"),
        (OBJECT, r"its class Mine does: put plugin = Mine\(\) below the class, and name fx.py:plugin"),
        ("plugin = 1", "it implements no hook: put @hookimpl above the functions"),
    ],
)
def test_a_file_whose_hooks_are_on_an_object_says_what_to_name(site, source, says):
    site.module("fx", source)
    with pytest.raises(PluginError, match=says):
        Plugins.load(modules=["fx.py"], entry_points=False, folder=site.folder)


def test_a_local_file_that_fails_leaves_no_half_module_behind(tmp_path):
    (tmp_path / "half.py").write_text("x = 1\nraise RuntimeError('later')\n")
    with pytest.raises(PluginError, match="importing it failed: RuntimeError: later"):
        Plugins.load(modules=["half.py"], entry_points=False, folder=tmp_path)
    assert [name for name in sys.modules if name.endswith("half")] == []


def test_an_older_copy_further_down_the_path_is_not_there(site, tmp_path, monkeypatch):
    site.effect("greet")
    older = Site(tmp_path / "older")
    older.folder.mkdir()
    older.install(
        "fencepost-greet", {"greet": "nothing_of_that_name", "gone": "nothing_of_that_name"}, version="0.9"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(older.folder)])
    plugins = Plugins.load()
    assert others(plugins) == ["greet"]
    assert [one.found.name for one in plugins.all() if one.state == "broken"] == []


def test_a_local_file_does_not_take_the_place_of_a_module(site, tmp_path):
    import json

    (tmp_path / "json.py").write_text(site.module("mine_source", pure("mine")).read_text())
    Plugins.load(modules=["./json.py"], entry_points=False, folder=tmp_path)
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none_like_it", "there is no module 'none_like_it', and no file "),
        ("none/like.py", "there is no file "),
        ("pluggy:nothing", "importing it failed: AttributeError"),
        ("..", "there is no module"),
        ("notes.txt/", "there is no file"),
    ],
)
def test_a_plugin_that_the_user_names_must_load(tmp_path, name, says):
    with pytest.raises(PluginError, match=f"--plugin .*: {says}"):
        Plugins.load(modules=[name], entry_points=False, folder=tmp_path)
    plugins = Plugins.load(modules=[name], entry_points=False, folder=tmp_path, tolerant=True)
    assert [one.state for one in plugins.all() if one.found.name not in BUILTINS] == ["broken"]


def test_naming_an_installed_plugin_does_not_load_it_twice(site):
    site.effect("greet")
    plugins = Plugins.load(modules=["plugin_greet"])
    assert others(plugins) == ["greet"]


def test_an_effect_is_configured_once_and_closed_once(site, tmp_path):
    site.effect(
        "open",
        source="""
        calls = []

        @hookimpl
        def effect_info():
            return EffectInfo(name="open", summary="s", settings={"n": Setting("n", default=1)})

        @hookimpl
        def effect_configure(settings):
            calls.append(settings["n"])

        @hookimpl
        def effect_outcome(text):
            return {"calls": list(calls)}

        @hookimpl
        def effect_close():
            calls.append("closed")
            raise RuntimeError("closing fails")
        """,
    )
    plugins = Plugins.load()
    effect = plugins.choose("open", {"n": 5})
    assert plugins.choose("open", {"n": 5}) is effect
    with pytest.raises(PluginError, match="in use with other settings"):
        plugins.choose("open", {"n": 6})
    plugins.close()
    plugins.close()
    assert effect.outcome("x") == {"calls": [5, "closed"]}


def test_validation_tells_a_refusal_from_a_fault(load_source):
    from fencepost.core.errors import InvalidInput

    effect = load_source("""
        import json

        @hookimpl
        def effect_info():
            return EffectInfo(name="strict", summary="s")

        @hookimpl
        def effect_validate(text):
            if text == "no":
                raise InvalidInput("never that")
            return json.loads(text)["amount"]

        @hookimpl
        def effect_outcome(text):
            return {}
        """).choose("strict")
    effect.validate('{"amount": 1}')
    with pytest.raises(InvalidInput, match=r"^never that$"):
        effect.validate("no")
    with pytest.raises(InvalidInput, match="'strict' refuses the text: Expecting property name"):
        effect.validate("{")
    with pytest.raises(
        PluginError, match="effect_validate of the effect 'strict' failed: KeyError: 'amount'"
    ):
        effect.validate("{}")


def test_a_reconcile_must_answer_in_the_three_words(load_source):
    from fencepost.core.model.effect import Applied, NotApplied

    from .test_settings import request

    effect = load_source("""
        @hookimpl
        def effect_info():
            return EffectInfo(name="asked", summary="s", delivery="probed")

        @hookimpl
        def effect_apply(request):
            return {}

        @hookimpl
        def effect_reconcile(request):
            return {"yes": Applied({"a": 1}), "no": NotApplied(), "true": True, "none": None}[request.text]
        """).choose("asked", {"namespace": "n"})
    assert effect.reconcile(request("yes")) == Applied({"a": 1})
    assert effect.reconcile(request("no")) == NotApplied()
    for text, kind in (("true", "bool"), ("none", "NoneType")):
        with pytest.raises(PluginError, match=f"returned {kind}; it must return Applied"):
            effect.reconcile(request(text))


def test_what_ships_is_named_as_it_is_listed():
    plugins = Plugins.load(modules=list(OPTIONAL), entry_points=False)
    assert {one.found.name for one in plugins.all()} == {*BUILTINS, *OPTIONAL}
    assert {one.info.name for one in plugins.all() if one.info} == set(BUILTINS)
    assert {one.state for one in plugins.all()} == {"loaded"}


IMPORTS_METADATA = (
    "import sys; from fencepost.plugins.manager import Plugins; plugins = Plugins.load();"
    "print('importlib.metadata' in sys.modules, 'greet' in plugins.effect_names())"
)


@pytest.mark.parametrize("source", ["folder", "zip"])
def test_metadata_is_read_only_where_there_is_something_to_find(site, tmp_path, source):
    def run(path):
        return subprocess.run(
            [sys.executable, "-c", IMPORTS_METADATA],
            env=os.environ | {"PYTHONPATH": str(path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert run(site.folder) == "False False\n"
    site.install("unrelated", {"x": "y"}, group="somebody.else")
    assert run(site.folder) == "False False\n"
    site.effect("greet")
    path = site.folder
    if source == "zip":
        path = shutil.make_archive(str(tmp_path / "archive"), "zip", site.folder)
    assert run(path) == "True True\n"


def test_metadata_that_has_nothing_to_do_with_us_may_be_as_broken_as_it_likes(site):
    site.install("unrelated", {"x": "y"}, group="somebody.else")
    (site.folder / "unrelated-1.0.dist-info" / "entry_points.txt").write_text("[somebody.else]\nnonsense")
    site.effect("greet")
    assert [one.found.name for one in Plugins.load().all() if one.found.name not in BUILTINS] == ["greet"]


def test_the_default_effect_needs_neither_metadata_nor_other_plugins():
    program = (
        "import sys; from fencepost.plugins.manager import Plugins;"
        "Plugins.load(entry_points=False).choose('count').outcome('x');"
        "print([name for name in ('importlib.metadata', 'email', 'fencepost.plugins.log') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("hook", ["effect_info", "effect_configure", "effect_validate", "effect_close"])
def test_a_plugin_that_exits_is_at_fault_like_one_that_raises(site, hook):
    arguments = {"effect_configure": "settings", "effect_validate": "text"}.get(hook, "")
    exits = f"@hookimpl\ndef {hook}({arguments}): raise SystemExit(0)\n"
    source = pure("bad") if hook != "effect_info" else "@hookimpl\ndef effect_outcome(text): return {}\n"
    site.effect("good")
    site.effect("bad", source=source + exits)
    plugins = Plugins.load()
    assert plugins.choose("good").outcome("x")["by"] == "good"
    if hook == "effect_close":
        plugins.choose("bad")
        plugins.close()
        return
    with pytest.raises(PluginError, match=f"{hook}|cannot be set up"):
        plugins.choose("bad").validate("x")
