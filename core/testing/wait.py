"""Waiting: a commit since the last claim began ends the wait, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

from ..ledgers.protocol import Ledger
from .base import Contract, claim, enqueue

WAKE_TIMEOUT_S = 20.0
"""How long a wait may take that should return at once; reached only by a ledger that is at fault."""


class WaitContract(Contract):
    """What wakes a worker that has found nothing."""

    def test_a_commit_since_the_last_claim_began_ends_the_wait(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        waiting, other = make_ledger(), make_ledger()
        for n in range(5):
            assert claim(waiting, 0, queues=["nothing"]) == []
            enqueue(other, f"job-{n}")
            assert waiting.wait(WAKE_TIMEOUT_S)

    def test_a_wait_is_asked_again_and_again_until_the_next_claim(
        self, make_ledger: Callable[[], Ledger]
    ) -> None:
        """A commit is not used up by the wait that reports it: only a claim can have seen its jobs."""
        waiting, other = make_ledger(), make_ledger()
        claim(waiting, 0)
        enqueue(other, "a")
        assert waiting.wait(WAKE_TIMEOUT_S)
        assert waiting.wait(WAKE_TIMEOUT_S)

    def test_a_wait_without_a_commit_times_out(self, make_ledger: Callable[[], Ledger]) -> None:
        """A commit before the claim does not count, though the news of it may still be on its way."""
        waiting, other = make_ledger(), make_ledger()
        enqueue(other, "a")

        def quiet() -> bool:
            claim(waiting, 0, queues=["nothing"])
            return not waiting.wait(0.02)

        assert any(quiet() for _ in range(50))

    def test_a_claim_that_finds_nothing_wakes_nobody(self, make_ledger: Callable[[], Ledger]) -> None:
        """Else idle workers would wake one another for ever."""
        waiting, other = make_ledger(), make_ledger()
        enqueue(other, "a", run_at_ms=9_000)

        def quiet() -> bool:
            claim(waiting, 0)
            assert claim(other, 0) == []
            return not waiting.wait(0.02)

        assert any(quiet() for _ in range(50))
