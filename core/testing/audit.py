"""The audit: every manual action, with who and why, in the same commit; and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..ledgers.protocol import Ledger
from .base import (
    Contract,
    claim_one,
    enqueue,
    job_of,
)
from .situations import SITUATIONS

ACTIONS: dict[str, tuple[str, str, str | None, Callable[..., bool]]] = {
    "reschedule": (
        "queued",
        "queued",
        "queued",
        lambda ledger, **by: ledger.reschedule("a", priority=1, **by),
    ),
    "cancel": ("running", "running", "dead", lambda ledger, **by: ledger.cancel("a", **by)),
    "redrive": ("dead", "dead", "queued", lambda ledger, **by: ledger.redrive("a", **by)),
    "redrive to held": ("dead_started", "dead", "held", lambda ledger, **by: ledger.redrive("a", **by)),
    "resolve as applied": (
        "held",
        "held",
        "completed",
        lambda ledger, **by: ledger.resolve("a", decision="applied", outcome={"x": 1}, **by),
    ),
    "resolve as retry": (
        "held",
        "held",
        "queued",
        lambda ledger, **by: ledger.resolve("a", decision="retry", **by),
    ),
    "resolve as failed": (
        "held",
        "held",
        "dead",
        lambda ledger, **by: ledger.resolve("a", decision="fail", **by),
    ),
}
"""Of each action: the situation, the state before and after, and the call."""


class AuditContract(Contract):
    """What is recorded."""

    @pytest.mark.parametrize("action", ACTIONS)
    def test_a_manual_action_is_recorded(self, make_ledger: Callable[[], Ledger], action: str) -> None:
        situation, from_state, to_state, act = ACTIONS[action]
        ledger = make_ledger()
        SITUATIONS[situation](ledger)
        assert act(ledger, actor="Zoë", reason="asked for\nby 山田", now_ms=7_000)
        entry = make_ledger().audit()[-1]  # the situation may have been reached by another one
        assert (entry.at_ms, entry.action, entry.id) == (7_000, action.split()[0], "a")
        assert (entry.actor, entry.reason) == ("Zoë", "asked for\nby 山田")
        assert (entry.from_state, entry.to_state) == (from_state, to_state)
        assert entry.version == job_of(ledger).version

    def test_a_manual_purge_is_recorded(self, ledger: Ledger) -> None:
        SITUATIONS["dead"](ledger)
        version = job_of(ledger).version
        assert ledger.purge("a", actor="me", reason="tidy", now_ms=7_000)
        (entry,) = ledger.audit()
        assert (entry.at_ms, entry.action, entry.id, entry.actor, entry.reason) == (
            7_000,
            "purge",
            "a",
            "me",
            "tidy",
        )
        assert (entry.from_state, entry.version) == ("dead", version)

    def test_an_action_without_actor_or_reason_is_recorded_too(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        ledger.cancel("a", now_ms=1)
        assert [(entry.actor, entry.reason) for entry in ledger.audit()] == [(None, None)]

    def test_a_reason_is_recorded_whole(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        reason = "the customer wrote: " + "é" * 50_000
        ledger.cancel("a", actor="me", reason=reason, now_ms=1)
        assert [entry.reason for entry in ledger.audit()] == [reason]

    def test_a_refused_action_is_not_recorded(self, ledger: Ledger) -> None:
        SITUATIONS["completed"](ledger)
        assert not ledger.cancel("a", actor="me", now_ms=7_000)
        assert not ledger.redrive("nobody", actor="me", now_ms=7_000)
        assert not ledger.resolve("a", decision="fail", actor="me", now_ms=7_000)
        assert not ledger.purge("a", actor="me", now_ms=7_000)
        assert ledger.audit() == []

    def test_what_workers_and_sweeps_do_is_not_recorded(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b", expires_at_ms=500)
        ledger.fail("a", claim_one(ledger, 0).version, error="no", now_ms=1)
        ledger.sweep_expired(now_ms=500)
        assert ledger.counts()["dead"] == 2
        assert ledger.audit() == []

    def test_the_audit_shows_the_latest_actions_oldest_first(self, ledger: Ledger) -> None:
        enqueue(ledger, "a", "b")
        for now_ms in (5, 3, 4):  # the clock does not put them in order
            ledger.cancel("a", now_ms=now_ms)
            ledger.redrive("a", now_ms=now_ms)
        ledger.cancel("b", now_ms=9)
        actions = [(entry.at_ms, entry.action, entry.id) for entry in ledger.audit()]
        assert actions == [
            (5, "cancel", "a"),
            (5, "redrive", "a"),
            (3, "cancel", "a"),
            (3, "redrive", "a"),
            (4, "cancel", "a"),
            (4, "redrive", "a"),
            (9, "cancel", "b"),
        ]
        assert [entry.id for entry in ledger.audit(limit=2)] == ["a", "b"]
        assert [entry.at_ms for entry in ledger.audit(id="a", limit=3)] == [3, 4, 4]
        assert [entry.at_ms for entry in ledger.audit(id="b")] == [9]
        assert ledger.audit(id="nobody") == []
