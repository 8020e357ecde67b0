"""What ``fencepost plugins`` shows, and what ``plugins doctor`` says."""

import json

import pytest
from fencepost.core.cli.plugins import app
from fencepost.core.errors import PluginError
from fencepost.plugins import listing
from fencepost.plugins.manager import Plugins
from typer.testing import CliRunner

from .conftest import pure


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def four(site):
    """One broken, one blocked and two good plugins."""
    site.effect("greet")
    site.module(
        "watch",
        "@hookimpl\ndef job_dead(job, error): pass\n@hookimpl(wrapper=True)\n"
        "def effect_apply(request): return (yield)",
    )
    site.install("fencepost-watch", {"watch": "watch"}, version="2.3")
    site.effect("wrong", source=pure("wrong").replace("effect_outcome", "effect_outcom"))
    site.effect("unwanted")
    return site


def test_it_shows_each_plugin_with_its_state_and_the_reason(four, on_a_terminal):
    result = run("--no-plugin", "unwanted")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "plugin    effect  version  distribution        delivery  state    hooks",
        "greet     greet   1.0      fencepost-greet     local     loaded   effect_info effect_outcome",
        "unwanted  -       1.0      fencepost-unwanted  -         blocked  -",
        "watch     -       2.3      fencepost-watch     -         loaded   job_dead effect_apply (wrapper)",
        "wrong     -       1.0      fencepost-wrong     -         broken   -",
        "",
        "unwanted is blocked: by --no-plugin or FENCEPOST_NO_PLUGINS",
        "wrong is broken: there is no hook 'effect_outcom'; 'effect_outcome' is near to it",
    ]


def test_the_same_as_one_json_document(four):
    document = json.loads(run("--no-plugin", "unwanted").stdout)
    assert (document["schema_version"], document["api_version"]) == (1, 1)
    by_name = {row["name"]: row for row in document["plugins"]}
    assert {name: row["state"] for name, row in by_name.items()} == {
        "greet": "loaded",
        "unwanted": "blocked",
        "watch": "loaded",
        "wrong": "broken",
    }
    assert by_name["greet"] == {
        "name": "greet",
        "effect": "greet",
        "summary": "Says its name.",
        "effect_version": "1",
        "delivery": "local",
        "settings": [],
        "distribution": "fencepost-greet",
        "version": "1.0",
        "hooks": ["effect_info", "effect_outcome"],
        "state": "loaded",
        "reason": None,
    }


def test_all_shows_what_ships_too(site):
    rows = {row["name"]: row for row in json.loads(run("--json", "--all").stdout)["plugins"]}
    assert (rows["count"]["state"], rows["count"]["distribution"]) == ("loaded", "fencepost")
    assert (rows["timing"]["state"], rows["log"]["state"]) == ("available", "available")
    rows = {
        row["name"]: row for row in json.loads(run("--json", "--all", "--plugin", "timing").stdout)["plugins"]
    }
    assert (rows["timing"]["state"], rows["log"]["state"]) == ("loaded", "available")


def test_a_named_plugin_that_is_broken_is_shown_and_stops_nothing(site, on_a_terminal):
    result = run("--plugin", "none_like_it")
    assert result.exit_code == 0
    assert "none_like_it is broken: there is no module 'none_like_it'" in result.stdout


def test_nothing_installed_is_said(site):
    assert listing.table(listing.rows(Plugins.load(entry_points=False))) == (
        "no plugins are installed; --all shows what ships\n"
    )


def test_the_doctor_exits_1_and_says_what_is_broken_and_what_to_do(four):
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert isinstance(result.exception, PluginError)
    message = str(result.exception)
    assert "  wrong (of fencepost-wrong 1.0): there is no hook 'effect_outcom'" in message
    assert "block them with --no-plugin" in message


def test_the_doctor_is_content_when_what_is_broken_is_blocked(four):
    result = run("doctor", "--no-plugin", "wrong")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["broken"] == []


def test_one_that_ships_and_is_broken_is_shown_though_nobody_asked_for_all(site, monkeypatch):
    monkeypatch.setattr("fencepost.plugins.discovery.BUILTINS", {"count": "none_like_it"})
    assert [(row["name"], row["state"]) for row in listing.rows(Plugins.load())] == [("count", "broken")]
