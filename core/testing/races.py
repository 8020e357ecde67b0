"""Many at once, as threads and as processes: a job is never handed out twice, and of two moves one wins."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TypeVar

import pytest

from ..errors import IdentityConflict, ReceiptConflict
from ..ledgers.protocol import Ledger
from ..model.receipts import Receipt
from .base import (
    Contract,
    Store,
    claim,
    claim_one,
    enqueue,
    job_of,
    new,
    receipt,
    settlement,
)
from .processes import (
    Handed,
    drain,
    enqueue_range,
    join_start,
)

WORKERS = 6
WAVE = 60
"""How many jobs each enqueuer brings."""
ROUNDS = 25

Answer = TypeVar("Answer")


def together(calls: Iterable[Callable[[], Answer]]) -> list[Answer]:
    """Call all at the same moment, each in its own thread, and return their answers in order."""
    functions = list(calls)
    start = Barrier(len(functions))

    def call(function: Callable[[], Answer]) -> Answer:
        start.wait()
        return function()

    with ThreadPoolExecutor(len(functions)) as threads:
        return list(threads.map(call, functions))


def check_each_once(handed: Sequence[Sequence[Handed]], names: list[str]) -> None:
    """Each job was handed out once, in its first attempt."""
    everything = [one for share in handed for one in share]
    assert Counter(id for id, _ in everything) == Counter(names)
    assert {version for _, version in everything} == {1}


class ConcurrencyContract(Contract):
    """What holds however many threads ask at once, over one ledger object or several."""

    @pytest.mark.parametrize(("batch", "share"), [(1, 20), (7, 60)])
    @pytest.mark.parametrize("shared", [True, False], ids=["one ledger", "a ledger each"])
    def test_threads_are_never_handed_the_same_job(
        self, make_ledger: Callable[[], Ledger], store: Store, shared: bool, batch: int, share: int
    ) -> None:
        first = make_ledger()
        names = [f"job-{n}" for n in range(WORKERS * share)]
        enqueue(first, *names)
        ledgers = [first if shared else make_ledger() for _ in range(WORKERS)]
        check_each_once(together(partial(drain, ledger, batch) for ledger in ledgers), names)
        assert first.counts()["completed"] == len(names)
        if store.check is not None:
            store.check()

    def test_of_a_late_completion_and_a_reclaim_exactly_one_wins(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        holder, other = make_ledger(), make_ledger()
        for n in range(ROUNDS):
            enqueue(holder, f"job-{n}")
            job = claim_one(holder, 0, lease_ms=100)
            calls: list[Callable[[], object]] = [
                partial(holder.complete, job.id, job.version, now_ms=99),
                partial(claim, other, 100),
            ]
            completed, reclaimed = map(bool, together(calls))
            assert completed is not reclaimed
            assert job_of(holder, job.id).version == (1 if completed else 3)
            if reclaimed:
                assert other.complete(job.id, 3, now_ms=101)
            assert job_of(holder, job.id).state == "completed"

    def test_of_two_completions_exactly_one_wins(self, make_ledger: Callable[[], Ledger]) -> None:
        one, other = make_ledger(), make_ledger()
        for n in range(ROUNDS):
            enqueue(one, f"job-{n}")
            job = claim_one(one, 0)
            answers = together(
                partial(ledger.complete, job.id, job.version, now_ms=1) for ledger in (one, other)
            )
            assert sorted(answers) == [False, True]

    def test_of_two_settlements_one_completes_and_one_stores_the_receipt(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        one, other = make_ledger(), make_ledger()
        for n in range(ROUNDS):
            enqueue(one, f"job-{n}")
            job = claim_one(one, 0)
            answers = together(partial(ledger.settle, [settlement(job)], now_ms=1) for ledger in (one, other))
            settled = [item for (item,) in answers]
            assert sorted(item.completed for item in settled) == [False, True]
            assert sorted(item.reused for item in settled) == [False, True]
            assert not any(item.conflict for item in settled)

    def test_of_a_cancel_and_a_completion_exactly_one_wins(self, make_ledger: Callable[[], Ledger]) -> None:
        one, other = make_ledger(), make_ledger()
        for n in range(ROUNDS):
            enqueue(one, f"job-{n}")
            job = claim_one(one, 0)
            completed, cancelled = together(
                [
                    partial(one.complete, job.id, job.version, now_ms=1),
                    partial(other.cancel, job.id, now_ms=1),
                ]
            )
            assert completed is not cancelled
            assert job_of(one, job.id).state == ("completed" if completed else "dead")

    def test_two_that_race_to_publish_the_same_receipt_both_succeed(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        ledgers = [make_ledger(), make_ledger()]
        for n in range(ROUNDS):
            given = receipt(f"job-{n}")
            enqueue(ledgers[0], given.id)
            published = together(partial(ledger.publish, given) for ledger in ledgers)
            assert sorted(each.reused for each in published) == [False, True]
            assert all(each.receipt.same_as(given) for each in published)

    def test_of_two_that_race_to_publish_different_receipts_the_first_stays(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        ledgers = [make_ledger(), make_ledger()]

        def published(ledger: Ledger, given: Receipt) -> bool:
            try:
                return ledger.publish(given).receipt.same_as(given)
            except ReceiptConflict:
                return False

        for n in range(ROUNDS):
            id = f"job-{n}"
            enqueue(ledgers[0], id)
            given = [receipt(id, words=words) for words in (1, 2)]
            won = together(map(partial, [published] * 2, ledgers, given))
            assert sorted(won) == [False, True]
            assert ledgers[0].receipts([id])[id].same_as(given[won.index(True)])

    def test_enqueuers_of_the_same_jobs_all_succeed_and_one_creates_them(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        ledgers = [make_ledger() for _ in range(4)]
        for n in range(ROUNDS):
            records = [new(f"job-{n}-{k}") for k in range(5)]
            orders = [records, records[::-1]] * 2
            answers = together(
                partial(ledger.enqueue, order) for ledger, order in zip(ledgers, orders, strict=True)
            )
            created = Counter(answer.id for batch in answers for answer in batch if answer.created)
            assert created == Counter(record.id for record in records)

    def test_of_enqueuers_that_bind_an_id_to_different_texts_one_wins(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        ledgers = [make_ledger() for _ in range(4)]

        def bound(ledger: Ledger, id: str, text: str) -> bool:
            try:
                return ledger.enqueue([new(id, text)])[0].created
            except IdentityConflict:
                return False

        for n in range(ROUNDS):
            id = f"job-{n}"
            won = together(
                partial(bound, ledger, id, f"text {place}") for place, ledger in enumerate(ledgers)
            )
            assert won.count(True) == 1
            assert ledgers[0].read_inputs([id])[id].text == f"text {won.index(True)}"


class ProcessContract(Contract):
    """What holds over processes; for stores that another process can open."""

    @pytest.fixture
    def store_name(self, store: Store) -> str:
        """The name by which other processes open the store."""
        if store.name is None:
            pytest.skip("Store.name: no other process can open this store")
        return store.name

    @pytest.mark.parametrize(("batch", "share"), [(1, 40), (7, 120)])
    def test_processes_are_never_handed_the_same_job(
        self, make_ledger: Callable[[], Ledger], store: Store, store_name: str, batch: int, share: int
    ) -> None:
        names = [f"job-{n}" for n in range(WORKERS * share)]
        ledger = make_ledger()
        enqueue(ledger, *names)
        with self.processes() as pool:
            handed = [pool.submit(drain, store_name, batch) for _ in range(WORKERS)]
            check_each_once([future.result() for future in handed], names)
        assert ledger.counts() == {"queued": 0, "running": 0, "completed": len(names), "dead": 0, "held": 0}
        assert len(ledger.receipts(names)) == len(names)
        if store.check is not None:
            store.check()

    def test_processes_enqueue_and_work_at_once_and_nothing_is_lost(
        self, make_ledger: Callable[[], Ledger], store_name: str
    ) -> None:
        names = [f"job-{n}" for n in range(2 * WAVE)]
        with self.processes() as pool:
            enqueuers = [pool.submit(enqueue_range, store_name, n * WAVE, WAVE) for n in range(2)]
            workers = [pool.submit(drain, store_name, 3, len(names)) for _ in range(WORKERS - 2)]
            assert sum(future.result() for future in enqueuers) == len(names)
            check_each_once([future.result() for future in workers], names)
        assert make_ledger().counts()["completed"] == len(names)

    def processes(self) -> ProcessPoolExecutor:
        """As many fresh interpreters as there are workers, which begin together."""
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(
            WORKERS, mp_context=context, initializer=join_start, initargs=(context.Barrier(WORKERS),)
        )
