"""The short form of ``make soak``: processes killed and stopped at random, and every promise still holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres_server import server
from tests.soak.memory import growth_kib
from tests.soak.run import restart_and_crash, soak


@pytest.mark.parametrize("name", ["store", "jobs.db"], ids=["directory", "sqlite"])
def test_killed_and_stopped_processes_cost_nothing(tmp_path: Path, name: str) -> None:
    directory = not name.endswith(".db")
    account = soak(
        str(tmp_path / name),
        tmp_path,
        kills=10 if directory else 25,
        jobs_per_producer=80 if directory else 400,
        seed=7,
    )
    assert account.kills >= 10


def test_a_server_that_restarts_and_crashes_under_them_costs_nothing_either(tmp_path: Path) -> None:
    with server(durable=True) as own:
        account = soak(
            own.url, tmp_path, kills=25, jobs_per_producer=400, seed=7, outages=restart_and_crash(own)
        )
    assert account.kills >= 25
    assert account.outages == 2


def test_memory_does_not_grow_with_the_jobs_done(tmp_path: Path) -> None:
    assert growth_kib(str(tmp_path / "jobs.db"), jobs=20_000, mark=5_000) < 4_096
