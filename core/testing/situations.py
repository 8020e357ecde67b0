"""Every situation that a job can be in, brought about by verbs alone, as of ``NOW_MS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..ledgers.protocol import Ledger
from ..model.job import Stamps
from .base import claim_one, enqueue

ENQUEUED_MS: Final = 1_000
CLAIMED_MS: Final = 2_000
NOW_MS: Final = 2_500
LATER_MS: Final = 9_000

Prepare = Callable[[Ledger], int]
"""Brings about the situation for the job "a", and returns the fence of its last claim (0: it had none)."""


def unknown(ledger: Ledger) -> int:
    """No job of this id was ever enqueued; another one was."""
    enqueue(ledger, "b", now_ms=ENQUEUED_MS)
    return 0


def queued(ledger: Ledger) -> int:
    """Ready, never claimed."""
    enqueue(ledger, "a", now_ms=ENQUEUED_MS)
    return 0


def delayed(ledger: Ledger) -> int:
    """Queued for later."""
    enqueue(ledger, "a", now_ms=ENQUEUED_MS, run_at_ms=LATER_MS)
    return 0


def expired(ledger: Ledger) -> int:
    """Queued, and its expiry has passed, but nothing has settled it."""
    enqueue(ledger, "a", now_ms=ENQUEUED_MS, expires_at_ms=NOW_MS)
    return 0


def retried(ledger: Ledger) -> int:
    """Queued for later after an attempt that failed."""
    version = running(ledger)
    assert ledger.retry(
        "a", version, run_at_ms=LATER_MS, error="not yet", max_attempts=3, now_ms=CLAIMED_MS + 1
    )
    return version


def running(ledger: Ledger) -> int:
    """Claimed, under a live lease."""
    enqueue(ledger, "a", now_ms=ENQUEUED_MS)
    return claim_one(ledger, CLAIMED_MS).version


def started(ledger: Ledger) -> int:
    """Claimed, under a live lease, and its attempt has started."""
    version = running(ledger)
    assert ledger.begin("a", version, now_ms=CLAIMED_MS + 1)
    return version


def running_expired(ledger: Ledger) -> int:
    """Under a live lease, but its expiry has passed; until that is reaped the owner may still move it."""
    enqueue(ledger, "a", now_ms=ENQUEUED_MS, expires_at_ms=NOW_MS)
    return claim_one(ledger, CLAIMED_MS).version


def lapsed(ledger: Ledger) -> int:
    """Running, its lease has ended, and nobody has claimed since."""
    enqueue(ledger, "a", now_ms=ENQUEUED_MS)
    return claim_one(ledger, CLAIMED_MS, lease_ms=NOW_MS - CLAIMED_MS).version


def lapsed_started(ledger: Ledger) -> int:
    """Running and started, and its lease has ended."""
    version = lapsed(ledger)
    assert ledger.begin("a", version, now_ms=CLAIMED_MS + 1)
    return version


def completed(ledger: Ledger) -> int:
    """Completed by its owner."""
    version = running(ledger)
    assert ledger.complete("a", version, now_ms=CLAIMED_MS + 1)
    return version


def dead(ledger: Ledger) -> int:
    """Buried by its owner; kept for ever."""
    version = running(ledger)
    assert ledger.fail("a", version, error="it cannot be", now_ms=CLAIMED_MS + 1)
    return version


def dead_started(ledger: Ledger) -> int:
    """Cancelled after its attempt had started, without a receipt."""
    version = started(ledger)
    assert ledger.cancel("a", now_ms=CLAIMED_MS + 2)
    return version


def held(ledger: Ledger) -> int:
    """Held by its owner, started, with all its stamps."""
    stamps = Stamps(1, 3, 2, 5)
    enqueue(ledger, "a", now_ms=ENQUEUED_MS, stamps=stamps)
    version = claim_one(ledger, CLAIMED_MS).version
    assert ledger.begin("a", version, now_ms=CLAIMED_MS + 1)
    assert ledger.hold("a", version, error="nobody knows", now_ms=CLAIMED_MS + 2)
    return version


def purged(ledger: Ledger) -> int:
    """Dead, and then forgotten."""
    version = dead(ledger)
    assert ledger.purge("a", now_ms=CLAIMED_MS + 2)
    return version


SITUATIONS: Final[dict[str, Prepare]] = {
    prepare.__name__: prepare
    for prepare in (
        unknown,
        queued,
        delayed,
        expired,
        retried,
        running,
        started,
        running_expired,
        lapsed,
        lapsed_started,
        completed,
        dead,
        dead_started,
        held,
        purged,
    )
}
