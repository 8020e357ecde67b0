"""The conformance suite, group by group, over every kind of ledger (see tests/conftest.py)."""

from __future__ import annotations

from fencepost.core import testing
from fencepost.core.testing import NewStore


class TestEnqueue(testing.EnqueueContract):
    pass


class TestArguments(testing.ArgumentContract):
    pass


class TestClaim(testing.ClaimContract):
    pass


class TestSettling(testing.ReapContract):
    pass


class TestHolder(testing.OwnerContract):
    pass


class TestMatrix(testing.MatrixContract):
    pass


class TestReceipts(testing.ReceiptContract):
    pass


class TestOperator(testing.OperatorContract):
    pass


class TestAudit(testing.AuditContract):
    pass


class TestSweep(testing.SweepContract):
    pass


class TestLooking(testing.ReadContract):
    pass


class TestOverview(testing.QueueCountsContract):
    pass


class TestWaiting(testing.WaitContract):
    pass


class TestSchedules(testing.ScheduleContract):
    pass


class TestCalendars(testing.CalendarContract):
    pass


class TestScheduleOperator(testing.ScheduleOperatorContract):
    pass


class TestPauses(testing.PauseContract):
    pass


class TestConcurrency(testing.ConcurrencyContract):
    pass


class TestProcesses(testing.ProcessContract):
    pass


class TestCapabilities(testing.CapabilityContract):
    pass


class TestJoining(testing.JoinContract):
    pass


class TestMoving(testing.TransferContract):
    pass


def test_the_class_of_all_groups_has_every_test_of_each() -> None:
    groups = [group for group in testing.LedgerContract.__mro__ if "Contract" in group.__name__]
    named = [name for group in groups for name in vars(group) if name.startswith("test_")]
    assert len(named) == len(set(named)), "two groups have a test of the same name: one would hide the other"
    assert {name for name in dir(testing.LedgerContract) if name.startswith("test_")} == set(named)
    run = {base for name, group in globals().items() if name.startswith("Test") for base in group.__mro__}
    assert set(groups) - {testing.LedgerContract} <= run, "a group is not run here"


def test_a_kind_of_ledger_lacks_what_its_capabilities_deny(
    new_store: NewStore, lacks: frozenset[str]
) -> None:
    store = new_store()
    with store.open() as ledger:
        assert ("scheduling" in lacks) is not ledger.capabilities.has_schedules
        assert ("joining" in lacks) is not ledger.capabilities.can_join_transaction
        assert ("store_name" in lacks) is (store.name is None)
