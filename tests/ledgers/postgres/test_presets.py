"""What a server, a database or a role presets for its sessions changes nothing of what a ledger does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from fencepost.core import (
    ClaimRequest,
    Ledger,
    LedgerFailed,
    NewJob,
    Receipt,
    Settlement,
)
from fencepost.core.ledgers.postgres import PostgresLedger

PRESETS = (
    "default_transaction_isolation=repeatable\\ read",
    "default_transaction_isolation=serializable",
    "default_transaction_deferrable=on",
    "search_path=nowhere",
    "bytea_output=escape",
    "standard_conforming_strings=off",
    "DateStyle=German",
    "IntervalStyle=sql_standard",
    "TimeZone=Asia/Kathmandu",
    "extra_float_digits=-15",
    "plan_cache_mode=force_generic_plan",
    "row_security=off",
)
TEXT = "back\\slash 'quote' \0 日本"
REASON = TEXT.replace("\0", "")


def preset(url: str, setting: str) -> str:
    return f"{url}&options={quote(f'-c {setting}', safe='')}"


@pytest.mark.parametrize("setting", PRESETS)
def test_workers_at_one_queue_get_on_whatever_is_preset(ledger: Ledger, url: str, setting: str) -> None:
    names = [f"job-{n}" for n in range(120)]
    with PostgresLedger(preset(url, setting)) as odd:
        odd.enqueue([NewJob(name, TEXT, run_at_ms=None if name == "job-0" else 1) for name in names])

        def work(_: int) -> list[str]:
            done = []
            for _ in range(10):
                jobs = odd.claim(ClaimRequest(claimant="me", lease_ms=60_000, max_attempts=3, limit=5))
                assert all(odd.read_inputs([job.id])[job.id].text == TEXT for job in jobs)
                batch = [
                    Settlement(job.id, job.version, Receipt(job.id, "0" * 64, {"n": TEXT})) for job in jobs
                ]
                done += [item.id for item in odd.settle(batch) if item.completed]
            return done

        with ThreadPoolExecutor(4) as threads:
            done = [name for names in threads.map(work, range(4)) for name in names]
        assert sorted(done) == sorted(names)
        assert odd.receipts(["job-1"])["job-1"].outcome == {"n": TEXT}
        odd.enqueue([NewJob("again", "x"), NewJob("job-1", TEXT)])
        assert odd.cancel("again", reason=REASON)
        assert [entry.reason for entry in odd.audit()] == [REASON]


def test_a_role_that_may_only_read_by_default_is_told_what_the_matter_is(ledger: Ledger, url: str) -> None:
    with (
        PostgresLedger(preset(url, "default_transaction_read_only=on")) as odd,
        pytest.raises(LedgerFailed, match="default_transaction_read_only is on"),
    ):
        odd.enqueue([NewJob("a", "text")])
    assert ledger.counts()["queued"] == 0
