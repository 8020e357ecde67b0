"""Spans are written alike wherever an option takes one: ``5m``, ``90s``, ``1.5``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inprocess import refused, run
from tests.programs import fencepost

ONE = b'[{"id": "a", "text": "x"}]'
SPANS = (
    ("enqueue", "--delay"),
    ("enqueue", "--expires-in"),
    ("enqueue", "--visibility-timeout"),
    ("enqueue", "--backoff-base"),
    ("enqueue", "--dead-letter-retention"),
    ("worker", "--lease"),
    ("worker", "--timeout"),
    ("worker", "--grace"),
    ("worker", "--delay"),
    ("jobs list", "--older-than"),
    ("jobs list", "--newer-than"),
    ("dead redrive", "--older-than"),
    ("queues", "--window"),
    ("top", "--interval"),
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    store = str(tmp_path / "jobs.db")
    assert run("enqueue", "--store", store, "--input", "-", stdin=ONE).status == 0
    return store


def arguments(command: str, store: str) -> list[str]:
    more = {
        "enqueue": ["--input", "-"],
        "worker": ["--queue", "idle"],
        "top": ["--json"],
        "dead redrive": ["--queue", "mail", "--dry-run"],
    }
    return [*command.split(), "--store", store, *more.get(command, [])]


@pytest.mark.parametrize(("command", "option"), SPANS)
@pytest.mark.parametrize("span", ["2s", "1.5", "0.5m", "1500ms"])
def test_every_option_that_is_a_span_takes_a_unit_or_seconds(
    store: str, command: str, option: str, span: str
) -> None:
    ended = run(*arguments(command, store), option, span, stdin=ONE)
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize(("command", "option"), SPANS)
@pytest.mark.parametrize("span", ["5w", "-1", "soon", "1e3", ""])
def test_what_is_no_span_is_quoted_with_an_example(store: str, command: str, option: str, span: str) -> None:
    said = refused(*arguments(command, store), f"{option}={span}", stdin=ONE)
    assert f"Invalid value for '{option}': {span!r}: must be a number and one unit" in said
    assert "for example 15m" in said


def lease_ms(store: str, *options: str) -> int:
    """How long the lease of a claim at the instant 100 is."""
    stop = ("--now-ms", "100", "--crash-after", "claim")
    script = ["worker", "--store", store, *options, *stop]
    assert fencepost(*script).returncode == 86
    (job,) = json.loads(run("jobs", "list", "--store", store, "--now-ms", "101").out)["jobs"]
    return int(job["LeaseUntil"]) - 100


@pytest.mark.parametrize("options", [("--lease", "1.5"), ("--lease", "1500ms"), ("--lease-ms", "1500")])
def test_the_lease_is_a_span_or_milliseconds(store: str, options: tuple[str, str]) -> None:
    assert lease_ms(store, *options) == 1_500


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--lease", "1s", "--lease-ms", "1000"), "either --lease or --lease-ms"),
        (("--delay", "1s", "--delay-ms", "1000"), "either --delay or --delay-ms"),
        (("--lease", "0"), "--lease must be from 1 ms"),
        (("--delay", "61s"), "--delay must be from 0 ms to 1 min"),
    ],
)
def test_an_alias_in_milliseconds_means_the_same_and_is_not_given_twice(
    store: str, options: tuple[str, ...], said: str
) -> None:
    assert said in refused("worker", "--store", store, *options)


@pytest.mark.parametrize("interval", ["0", "99ms", "2h"])
def test_top_reads_at_intervals_that_a_person_can_follow(store: str, interval: str) -> None:
    assert "--interval must be from 100ms to 1h" in refused("top", "--store", store, "--interval", interval)
