"""Which step of a sweep comes when, in the SQL ledgers: every step is a transaction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fencepost.core.ledgers.sql.sweep import STEP, Sweep
from fencepost.core.model.records import Swept


@pytest.mark.parametrize(
    ("old", "late", "transactions"),
    [
        (0, 0, ["p0 e0"]),
        (2, 3, ["p2 e3"]),
        (STEP - 1, STEP - 1, [f"p{STEP - 1} e{STEP - 1}"]),
        (STEP, 3, [f"p{STEP}", "p0 e3"]),
        (2, STEP, [f"p2 e{STEP}", "e0"]),
        (2 * STEP + 1, STEP + 2, [f"p{STEP}", f"p{STEP}", f"p1 e{STEP}", "e2"]),
    ],
)
def test_retention_ends_before_expiry_begins_and_the_step_between_does_both(
    old: int, late: int, transactions: list[str]
) -> None:
    left = {"p": old, "e": late}
    parts: list[str] = []

    def take(what: str, limit: int) -> range:
        count = min(limit, left[what])
        left[what] -= count
        if what == "e":
            left["p"] += count  # buried only now: not this sweep's to purge
        parts.append(f"{what}{count}")
        return range(count)

    engine: Any = SimpleNamespace(
        purgeable=lambda transaction, queue, now_ms, limit: take("p", limit),
        expired=lambda transaction, queue, now_ms, limit: take("e", limit),
        purge=lambda transaction, places: None,
        bury=lambda transaction, places, error, now_ms, nothing_done: None,
    )
    sweep: Sweep[Any] = Sweep(engine, None)
    done = []
    while not sweep.done:
        parts.clear()
        sweep.step(None, 0)
        done.append(" ".join(parts))
    assert done == transactions
    assert sweep.swept == Swept(expired=late, purged=old)
