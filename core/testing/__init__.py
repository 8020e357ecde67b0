"""The conformance suite: what every ledger must do, as tests that anyone can run over their own::

    class TestMyLedger(LedgerContract):
        @pytest.fixture
        def new_store(self, tmp_path):
            numbers = itertools.count()

            def fresh():
                path = tmp_path / f"store-{next(numbers)}"
                return Store(open=lambda: MyLedger(path))

            return fresh

``LedgerContract`` is all groups in one; each group is a class of its own too. Kinds of ledgers may differ only in
their ``Capabilities`` and in the fields of ``Store``. ``ModelLedger`` is the oracle; ``machine`` holds the random walk
that compares a ledger with it.

Importing this package needs pytest; nothing else in Fencepost does.
"""

import pytest

_GROUPS = (
    "arguments",
    "audit",
    "base",
    "calendars",
    "capabilities",
    "claim",
    "enqueue",
    "owner",
    "machine",
    "matrix",
    "operator",
    "pauses",
    "processes",
    "queue_counts",
    "races",
    "reads",
    "reap",
    "receipts",
    "schedule_operator",
    "schedules",
    "situations",
    "sweep",
    "transfer",
    "wait",
)
# Asserts in these modules are to say what differed, as asserts in test modules do.
pytest.register_assert_rewrite(*(f"{__name__}.{group}" for group in _GROUPS))

from .arguments import ArgumentContract  # noqa: E402
from .audit import AuditContract  # noqa: E402
from .base import Contract, NewStore, Store  # noqa: E402
from .calendars import CalendarContract  # noqa: E402
from .capabilities import CapabilityContract, JoinContract  # noqa: E402
from .claim import ClaimContract  # noqa: E402
from .enqueue import EnqueueContract  # noqa: E402
from .matrix import MatrixContract  # noqa: E402
from .model import ModelLedger  # noqa: E402
from .model_store import KEEPS_ALL, KEEPS_LITTLE, ModelStore, as_kept  # noqa: E402
from .operator import OperatorContract  # noqa: E402
from .owner import OwnerContract  # noqa: E402
from .pauses import PauseContract  # noqa: E402
from .queue_counts import QueueCountsContract  # noqa: E402
from .races import ConcurrencyContract, ProcessContract  # noqa: E402
from .reads import ReadContract  # noqa: E402
from .reap import ReapContract  # noqa: E402
from .receipts import ReceiptContract  # noqa: E402
from .schedule_operator import ScheduleOperatorContract  # noqa: E402
from .schedules import ScheduleContract  # noqa: E402
from .sweep import SweepContract  # noqa: E402
from .transfer import TransferContract  # noqa: E402
from .wait import WaitContract  # noqa: E402


class LedgerContract(
    EnqueueContract,
    ClaimContract,
    ReapContract,
    OwnerContract,
    MatrixContract,
    ReceiptContract,
    ArgumentContract,
    OperatorContract,
    AuditContract,
    SweepContract,
    ReadContract,
    WaitContract,
    QueueCountsContract,
    ScheduleContract,
    CalendarContract,
    ScheduleOperatorContract,
    PauseContract,
    ConcurrencyContract,
    ProcessContract,
    TransferContract,
    CapabilityContract,
    JoinContract,
):
    """Every group in one class."""


__all__ = [
    "KEEPS_ALL",
    "KEEPS_LITTLE",
    "ArgumentContract",
    "AuditContract",
    "CalendarContract",
    "CapabilityContract",
    "ClaimContract",
    "ConcurrencyContract",
    "Contract",
    "EnqueueContract",
    "JoinContract",
    "LedgerContract",
    "MatrixContract",
    "ModelLedger",
    "ModelStore",
    "NewStore",
    "OperatorContract",
    "OwnerContract",
    "PauseContract",
    "ProcessContract",
    "QueueCountsContract",
    "ReadContract",
    "ReapContract",
    "ReceiptContract",
    "ScheduleContract",
    "ScheduleOperatorContract",
    "Store",
    "SweepContract",
    "TransferContract",
    "WaitContract",
    "as_kept",
]
