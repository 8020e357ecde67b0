"""Random walks of every kind of ledger beside the model; longer with FENCEPOST_SOAK=1."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    Job,
    Settled,
    Settlement,
)
from fencepost.core.testing import (
    ModelLedger,
    ModelStore,
    NewStore,
    Store,
)
from fencepost.core.testing.machine import walk
from hypothesis import Phase, settings

MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one: a walk is about what is seen, not about what outlives a power cut."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


def test_a_random_walk_shows_the_same_as_the_model(new_store: NewStore) -> None:
    walk(new_store, settings())


def test_the_walks_are_as_many_and_as_long_as_promised() -> None:
    assert settings().max_examples >= 200
    assert settings().stateful_step_count >= 50


# -- the walk notices: each of these ledgers has one small fault ----------------------------------------------


class ReclaimsLate(ModelLedger):
    """At its last instant a lease still counts."""

    def _reap(self, request: ClaimRequest, now_ms: int) -> None:
        super()._reap(request, now_ms - 1)


class TakesAnyOldFence(ModelLedger):
    """A completion under an earlier fence passes."""

    def complete(self, id: str, version: int, *, now_ms: int | None = None) -> bool:
        job = self.get_job(id)
        return super().complete(id, job.version if job and version < job.version else version, now_ms=now_ms)


class ShortensLeases(ModelLedger):
    """A heartbeat sets the end of the lease, though it may lie before."""

    def heartbeat(self, id: str, version: int, *, extend_ms: int = 0, now_ms: int | None = None) -> bool:
        with self._store.writing():
            granted = super().heartbeat(id, version, extend_ms=extend_ms, now_ms=now_ms)
            if granted and extend_ms:
                self._put(self._store.jobs[id]._replace(lease_until_ms=self._at(now_ms) + extend_ms))
            return granted


class ForgetsFences(ModelLedger):
    """A purged id begins again at version 0."""

    def purge(self, id: str, **options: Any) -> bool:
        purged = super().purge(id, **options)
        if purged:
            self._store.purged.clear()
        return purged


class DropsReceipts(ModelLedger):
    """The receipt of a refused completion is not kept."""

    def _settle_one(self, settlement: Settlement, now_ms: int) -> Settled:
        settled = super()._settle_one(settlement, now_ms)
        if not (settled.completed or settled.reused or settled.conflict):
            del self._store.receipts[settlement.id]
        return settled


class PicksInAnyOrder(ModelLedger):
    """Delayed jobs are not put in order of their instant."""

    def _pick(self, request: ClaimRequest, now_ms: int) -> list[Job]:
        return list(reversed(super()._pick(request, now_ms)))


class RedrivesBlindly(ModelLedger):
    """What had started is queued by a redrive, receipt or not."""

    def redrive(self, id: str, **options: Any) -> bool:
        with self._store.writing():
            job = self.get_job(id)
            if job is not None and job.state == "dead":
                self._put(job._replace(started_at_ms=None))
            return super().redrive(id, **options)


class MixesUpConnections(ModelLedger):
    """A connection does not see the pauses that another one made."""

    def _pick(self, request: ClaimRequest, now_ms: int) -> list[Job]:
        paused, self._store.paused = self._store.paused, set()
        try:
            return super()._pick(request, now_ms)
        finally:
            self._store.paused = paused


@pytest.mark.parametrize(
    "faulty",
    [
        ReclaimsLate,
        TakesAnyOldFence,
        ShortensLeases,
        ForgetsFences,
        DropsReceipts,
        PicksInAnyOrder,
        RedrivesBlindly,
        MixesUpConnections,
    ],
)
def test_a_walk_notices_one_small_fault(faulty: type[ModelLedger]) -> None:
    def new_store() -> Store:
        store = ModelStore()
        return Store(open=lambda: faulty(store))

    with pytest.raises(AssertionError):
        walk(new_store, settings(max_examples=200, phases=[Phase.generate], derandomize=True))
