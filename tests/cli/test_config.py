"""``fencepost.toml``: found beside the working folder, by option or by environment; unknown keys are errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inprocess import refused, run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FENCEPOST_CONFIG", raising=False)
    return tmp_path


def enqueued(*arguments: str, config: str | None = None) -> dict[str, Any]:
    """Enqueue a job; how ``status`` shows it."""
    options = [] if config is None else ["--config", config]
    record = b'[{"id": "a", "text": "x"}]'
    ended = run("enqueue", "--input", "-", "--now-ms", "0", *arguments, *options, stdin=record)
    assert (ended.status, ended.err) == (0, "")
    job: dict[str, Any] = json.loads(run("status", *options).out)["jobs"][0]
    return job


def test_without_a_file_the_store_is_a_folder_called_jobs_data(here: Path) -> None:
    enqueued()
    assert (here / "jobs-data" / "jobs.json").exists()


def test_the_file_of_the_working_folder_names_the_store(here: Path) -> None:
    (here / "fencepost.toml").write_text('store = "mine.db"\n')
    enqueued()
    assert (here / "mine.db").exists()
    shown = run("jobs", "list")
    assert json.loads(shown.out)["jobs"][0]["ID"] == "a"


def test_an_option_wins_over_the_environment_and_that_over_the_working_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fencepost.toml", "by-env.toml", "by-option.toml"):
        (here / name).write_text(f'store = "{name}.db"\n')
    monkeypatch.setenv("FENCEPOST_CONFIG", "by-env.toml")
    enqueued()
    assert (here / "by-env.toml.db").exists()
    enqueued(config="by-option.toml")
    assert (here / "by-option.toml.db").exists()
    assert not (here / "fencepost.toml.db").exists()


def test_a_queue_s_stamps_are_the_defaults_of_what_is_enqueued_there(here: Path) -> None:
    (here / "fencepost.toml").write_text(
        "[queues.mail]\nvisibility_timeout_s = 60\nmax_attempts = 5\n"
        "backoff_base_s = 0.5\ndead_letter_retention_s = 86400\n"
    )
    job = enqueued("--queue", "mail", "--max-attempts", "2")
    assert job == {
        "ID": "a", "State": "queued", "Version": 0, "LeaseUntil": 0, "Attempts": 0, "Queue": "mail",
        "VisibilityTimeout": 60_000, "MaxAttempts": 2, "BackoffBase": 500, "DeadLetterRetention": 86_400_000,
    }  # fmt: skip


def test_other_queues_have_no_defaults(here: Path) -> None:
    (here / "fencepost.toml").write_text("[queues.mail]\nmax_attempts = 5\n")
    assert "MaxAttempts" not in enqueued()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stor = 'a'", "'stor' is unknown; there are effects, queues, schedules, store"),
        ("store = 3", "store must be a string"),
        ("store = ''", "store must be a string"),
        ("queues = 3", "[queues.NAME] must be tables"),
        ("[queues]\nmail = 3", "[queues.mail]: must be a table"),
        ("[queues.Mail]", "queue 'Mail'"),
        ("[queues.mail]\nmax_tries = 3", "'max_tries' is unknown"),
        ("[queues.mail]\nmax_attempts = 0", "max_attempts is 0"),
        ("[queues.mail]\nmax_attempts = 1.5", "max_attempts must be a whole number"),
        ("[queues.mail]\nvisibility_timeout_s = 'long'", "visibility_timeout_s must be a number"),
        ("not toml", "not TOML"),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_the_file_and_nothing_is_made(
    here: Path, text: str, words: str
) -> None:
    (here / "fencepost.toml").write_text(text)
    said = refused("enqueue", "--input", "-", stdin=b'[{"id": "a", "text": "x"}]')
    assert "fencepost.toml" in said
    assert words in said
    assert [path.name for path in here.iterdir()] == ["fencepost.toml"]


def test_a_relative_store_is_relative_to_the_file_that_names_it(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "etc").mkdir()
    (here / "etc" / "shop.toml").write_text('store = "../data/jobs.db"\n')
    (here / "data").mkdir()
    enqueued(config="etc/shop.toml")
    assert (here / "data" / "jobs.db").exists()
    monkeypatch.chdir("/")
    shown = run("jobs", "list", "--config", str(here / "etc" / "shop.toml"))
    assert json.loads(shown.out)["jobs"][0]["ID"] == "a"


def test_an_option_s_relative_store_is_relative_to_the_working_folder(here: Path) -> None:
    (here / "etc").mkdir()
    (here / "etc" / "shop.toml").write_text('store = "other.db"\n')
    given = ("--store", "mine.db", "--config", "etc/shop.toml")
    assert run("enqueue", "--input", "-", *given, stdin=b'[{"id": "a", "text": "x"}]').status == 0
    assert (here / "mine.db").exists()


def test_a_mark_at_the_start_of_the_file_is_passed_over(here: Path) -> None:
    (here / "fencepost.toml").write_bytes(b'\xef\xbb\xbfstore = "mine.db"\n')
    enqueued()
    assert (here / "mine.db").exists()


def test_a_file_in_another_encoding_is_said_to_be_so(here: Path) -> None:
    (here / "fencepost.toml").write_bytes('store = "mine.db"\n'.encode("utf-16"))
    assert "fencepost.toml: not UTF-8 at byte 0; save it as UTF-8" in refused("jobs", "list")


def test_a_link_to_nowhere_in_the_file_s_place_is_an_error(here: Path) -> None:
    (here / "fencepost.toml").symlink_to("gone.toml")
    assert "fencepost.toml: is a link to gone.toml, which does not exist" in refused("jobs", "list")


def test_a_folder_in_the_file_s_place_is_an_error(here: Path) -> None:
    (here / "fencepost.toml").mkdir()
    assert "fencepost.toml: is a folder" in refused("jobs", "list")


def test_a_file_that_was_named_and_is_not_there_is_an_error(here: Path) -> None:
    assert "nix.toml" in refused("jobs", "list", "--config", "nix.toml")
