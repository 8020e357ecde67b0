"""Programs enqueue through a producer by the same rules as the command."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from fencepost.core import (
    IdentityConflict,
    InvalidInput,
    Job,
    NewJob,
    PluginError,
    Producer,
    Stamps,
    open_ledger,
    open_producer,
)
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.testing import NewStore, Store

MAIL = """
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo(name="mail", summary="Says what it would send.")

@hookimpl
def effect_outcome(text):
    return {"sent": text}

@hookimpl
def effect_validate(text):
    if "@" not in text:
        raise ValueError("there is no address in it")

@hookimpl
def job_enqueued(job, created):
    with open("told.txt", "a") as told:
        print(job.id, created, file=told)
"""

CONFIG = """
[queues.mail]
max_attempts = 5
visibility_timeout_s = 60
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a configuration and a plugin in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fencepost.toml").write_text(CONFIG)
    (tmp_path / "mail.py").write_text(MAIL)
    return tmp_path


@pytest.fixture
def store(new_store: NewStore) -> Store:
    return new_store()


@pytest.fixture
def producer(folder: Path, store: Store, store_name: str) -> Iterator[Producer]:
    with open_producer(store_name, plugins=["mail.py"]) as producer:
        yield producer


@pytest.fixture
def store_name(store: Store) -> str:
    assert store.name is not None
    return store.name


def job_of(producer: Producer, id: str) -> Job:
    job = producer.ledger.get_job(id)
    assert job is not None
    return job


def test_a_job_gets_the_stamps_of_its_queue_where_it_has_none_of_its_own(producer: Producer) -> None:
    producer.enqueue(
        [
            NewJob("plain", "text"),
            NewJob("queued", "text", queue="mail"),
            NewJob("own", "text", queue="mail", stamps=Stamps(max_attempts=2)),
        ]
    )
    assert job_of(producer, "plain").stamps == Stamps()
    assert job_of(producer, "queued").stamps == Stamps(max_attempts=5, visibility_timeout_s=60)
    assert job_of(producer, "own").stamps == Stamps(max_attempts=2, visibility_timeout_s=60)


def test_a_text_that_its_effect_refuses_stores_nothing_of_the_request(producer: Producer) -> None:
    jobs = [NewJob("good", "a@b", effect="mail"), NewJob("bad", "nobody", effect="mail")]
    with pytest.raises(InvalidInput, match=r"record 2 \(id 'bad'\): the effect 'mail' refuses the text"):
        producer.enqueue(jobs)
    assert producer.ledger.jobs().jobs == []


def test_each_text_is_checked_by_the_effect_of_its_own_job(producer: Producer) -> None:
    producer.enqueue([NewJob("counted", "nobody"), NewJob("mailed", "a@b", effect="mail")])
    assert sorted(job.effect for job in producer.ledger.jobs().jobs) == ["count", "mail"]


def test_an_effect_that_is_not_installed_here_is_named_once_and_its_jobs_wait(
    producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        producer.enqueue([NewJob("a", "text", effect="elsewhere")])
        producer.enqueue([NewJob("b", "text", effect="elsewhere")])
    assert [record.name for record in caplog.records] == ["fencepost.producer"]
    assert "'elsewhere'" in caplog.text
    assert len(producer.ledger.jobs().jobs) == 2


@pytest.mark.parametrize(("delay", "expires_in"), [("90s", "1.5h"), (90, 5_400.0)])
def test_relative_times_count_from_the_enqueue(
    producer: Producer, delay: float | str, expires_in: float | str
) -> None:
    producer.enqueue([NewJob("a", "text")], delay=delay, expires_in=expires_in, now_ms=1_000)
    job = job_of(producer, "a")
    assert (job.run_at_ms, job.expires_at_ms) == (91_000, 5_401_000)


def test_relative_times_count_from_the_ledgers_clock(producer: Producer) -> None:
    before_ms = producer.ledger.now_ms()
    producer.enqueue([NewJob("a", "text")], delay="1h")
    run_at_ms = job_of(producer, "a").run_at_ms
    assert run_at_ms is not None
    assert before_ms + 3_600_000 <= run_at_ms <= producer.ledger.now_ms() + 3_600_000


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"delay": "soon"}, "delay 'soon': must be a number and one unit"),
        ({"delay": -1}, "delay is -1, it must be a number of seconds of 0 or more"),
        ({"expires_in": True}, "expires_in must be a number of seconds or a span"),
        ({"expires_in": 0}, "expires_in is 0, it must be more than 0"),
    ],
)
def test_a_time_that_is_none_is_refused_by_name(
    producer: Producer, times: dict[str, float], said: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        producer.enqueue([NewJob("a", "text")], **times)
    assert said in str(refusal.value)
    assert producer.ledger.jobs().jobs == []


def test_observers_are_told_of_each_job_and_whether_it_is_new(producer: Producer, folder: Path) -> None:
    producer.enqueue([NewJob("a", "text")])
    producer.enqueue([NewJob("a", "text"), NewJob("b", "text")])
    assert (folder / "told.txt").read_text() == "a True\na False\nb True\n"


def test_a_conflict_is_that_of_the_ledger(producer: Producer) -> None:
    producer.enqueue([NewJob("a", "text")])
    with pytest.raises(IdentityConflict):
        producer.enqueue([NewJob("a", "another")])


def test_jobs_come_with_the_callers_sqlite_transaction_or_not_at_all(folder: Path) -> None:
    import sqlite3

    with open_producer("shop.db", plugins=["mail.py"]) as producer:
        producer.ledger.counts()
        shop = sqlite3.connect("shop.db")
        producer.enqueue([NewJob("gone", "a@b", queue="mail", effect="mail")], connection=shop)
        shop.rollback()
        producer.enqueue([NewJob("kept", "a@b", queue="mail", effect="mail")], delay="5s", connection=shop)
        shop.commit()
        shop.close()
        assert [job.id for job in producer.ledger.jobs().jobs] == ["kept"]
        assert job_of(producer, "kept").stamps.max_attempts == 5


def test_jobs_come_with_the_callers_postgresql_transaction_or_not_at_all(
    folder: Path, postgres_stores: Callable[[Path], Store]
) -> None:
    name = postgres_stores(Path()).name
    assert name is not None
    with open_producer(name) as producer, psycopg.connect(parse_address(name).conninfo) as shop:
        producer.enqueue([NewJob("gone", "text")], connection=shop)
        shop.rollback()
        producer.enqueue([NewJob("kept", "text", queue="mail")], delay="5s", connection=shop)
        shop.commit()
        assert [job.id for job in producer.ledger.jobs().jobs] == ["kept"]


def test_the_store_is_that_of_the_configuration_unless_one_is_named(folder: Path) -> None:
    (folder / "other.toml").write_text('store = "configured.db"\n')
    with open_producer(config="other.toml") as producer:
        producer.enqueue([NewJob("a", "text")])
    with open_ledger(folder / "configured.db") as ledger:
        assert ledger.get_job("a") is not None


def test_a_plugin_that_cannot_be_loaded_is_an_error_at_once(folder: Path) -> None:
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(PluginError, match="nothing_of_that_name"):
        open_producer("jobs.db", plugins=["broken.py"])
