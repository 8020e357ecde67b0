"""The base of every contract class: a store under test, and short words for what tests do all the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ..ledgers.protocol import Ledger
from ..model.inputs import NewJob, text_sha256
from ..model.job import ClaimRequest, Job
from ..model.receipts import Receipt, Settlement

LEASE_MS = 1_000
MAX_ATTEMPTS = 3
NO_CURSORS = ["", "nonsense", "-1 OR 1=1", "\0", "9" * 400, "é", "١"]
"""What no page has ever returned as its cursor."""


@dataclass(frozen=True)
class Store:
    """One store under test, which does not exist until it is opened."""

    open: Callable[[], Ledger]
    """Opens it; again and again, for several connections."""
    name: str | None = None
    """What ``open_ledger`` takes, for other processes; None: no other process can open it."""
    connect: Callable[[], Any] | None = None
    """A DB-API connection of the caller's own, for ledgers that can join its transaction."""
    check: Callable[[], None] | None = None
    """The engine's own check that the store is whole; raises if it is not."""


NewStore = Callable[[], Store]


class Contract:
    """The root of all contract classes.

    A subclass, or its conftest, gives the fixture ``new_store``: a function that makes a fresh ``Store`` each time.
    """

    @pytest.fixture
    def store(self, new_store: NewStore) -> Store:
        """The store of this test."""
        return new_store()

    @pytest.fixture
    def make_ledger(self, store: Store) -> Iterator[Callable[[], Ledger]]:
        """Opens the store of this test again and again; closes what was opened when the test ends."""
        opened: list[Ledger] = []

        def make() -> Ledger:
            opened.append(store.open())
            return opened[-1]

        yield make
        for ledger in opened:
            ledger.close()

    @pytest.fixture
    def ledger(self, make_ledger: Callable[[], Ledger]) -> Ledger:
        """The store of this test, open."""
        return make_ledger()


def new(id: str = "a", text: str | None = None, **options: Any) -> NewJob:
    """A job to enqueue; each id has a text of its own."""
    return NewJob(id, f"text of {id}" if text is None else text, **options)


def enqueue(ledger: Ledger, *ids: str, now_ms: int = 0, **options: Any) -> None:
    """Enqueue jobs that are alike in all but their ids."""
    ledger.enqueue([new(id, **options) for id in ids], now_ms=now_ms)


def claim(ledger: Ledger, now_ms: int, **options: Any) -> list[Job]:
    """Claim as most tests do: one job, for a second, at most three attempts."""
    defaults: dict[str, Any] = {
        "claimant": "worker-1",
        "lease_ms": LEASE_MS,
        "max_attempts": MAX_ATTEMPTS,
    }
    return ledger.claim(ClaimRequest(**(defaults | options)), now_ms=now_ms)


def reap_passed(ledger: Ledger, now_ms: int, **options: Any) -> None:
    """Let a claim reap jobs whose time has passed. It takes a decoy of its own, which is gone when it returns."""
    decoy = f"decoy-{sum(ledger.counts().values())}"
    enqueue(ledger, decoy, priority=2**31 - 1)
    job = claim_one(ledger, now_ms, **options)
    assert job.id == decoy
    assert ledger.cancel(decoy, now_ms=now_ms)
    assert ledger.purge(decoy, now_ms=now_ms)


def claim_one(ledger: Ledger, now_ms: int, **options: Any) -> Job:
    """Claim one job, which must be there."""
    claimed = claim(ledger, now_ms, **options)
    assert len(claimed) == 1, f"one job should be there to claim, not {claimed}"
    return claimed[0]


def ids(jobs: list[Job]) -> list[str]:
    """The ids, in order."""
    return [job.id for job in jobs]


def job_of(ledger: Ledger, id: str = "a") -> Job:
    """The job, which must be known."""
    job = ledger.get_job(id)
    assert job is not None, f"the job {id!r} should be known"
    return job


def receipt(id: str = "a", text: str | None = None, *, effect: str = "count", **outcome: Any) -> Receipt:
    """A receipt for the text that ``new`` gives to the id."""
    text = f"text of {id}" if text is None else text
    return Receipt(id, text_sha256(text), outcome or {"words": 3}, effect, None if effect == "count" else "1")


def settlement(job: Job, **outcome: Any) -> Settlement:
    """The settlement of a claim, with a receipt for the text that ``new`` gives."""
    return Settlement(job.id, job.version, receipt(job.id, effect=job.effect, **outcome))


def drain(ledger: Ledger, now_ms: int, **options: Any) -> list[str]:
    """Claim one at a time until nothing is ready, and return the ids in the order in which they came."""
    order: list[str] = []
    while claimed := claim(ledger, now_ms, **options):
        order += ids(claimed)
    return order
