"""The conformance suite: what every ledger must do, as tests that anyone can run over their own.

    class TestMyLedger(LedgerContract):
        @pytest.fixture
        def new_store(self, tmp_path):
            numbers = itertools.count()

            def fresh():
                path = tmp_path / f"store-{next(numbers)}"
                return Store(open=lambda: MyLedger(path))

            return fresh

``LedgerContract`` is all groups in one; each group is a class of its own too. In what kinds of ledgers differ is
said by their ``Capabilities`` and by the fields of ``Store``, and by nothing else. ``ModelLedger`` is the oracle;
``machine`` holds the random walk that compares a ledger with it.

Importing this package needs pytest; nothing else in Fencepost does.
"""

import pytest

_GROUPS = (
    "auditing",
    "base",
    "claiming",
    "differing",
    "enqueue",
    "holding",
    "looking",
    "machine",
    "matrix",
    "moving",
    "operating",
    "overviewing",
    "pausing",
    "processes",
    "racing",
    "receipting",
    "refusing",
    "scheduling",
    "settling",
    "situations",
    "sweeping",
    "waiting",
)
# Asserts in these modules are to say what differed, as asserts in test modules do.
pytest.register_assert_rewrite(*(f"{__name__}.{group}" for group in _GROUPS))

from .auditing import AuditContract  # noqa: E402
from .base import Contract, NewStore, Store  # noqa: E402
from .claiming import ClaimContract  # noqa: E402
from .differing import CapabilityContract, JoinContract  # noqa: E402
from .enqueue import EnqueueContract  # noqa: E402
from .holding import HolderContract  # noqa: E402
from .looking import LookingContract  # noqa: E402
from .matrix import MatrixContract  # noqa: E402
from .model import ModelLedger  # noqa: E402
from .model_store import KEEPS_ALL, KEEPS_LITTLE, ModelStore, as_kept  # noqa: E402
from .moving import MovingContract  # noqa: E402
from .operating import OperatorContract  # noqa: E402
from .overviewing import OverviewContract  # noqa: E402
from .pausing import PauseContract  # noqa: E402
from .racing import ConcurrencyContract, ProcessContract  # noqa: E402
from .receipting import ReceiptContract  # noqa: E402
from .refusing import ArgumentContract  # noqa: E402
from .scheduling import ScheduleContract  # noqa: E402
from .settling import SettlingContract  # noqa: E402
from .sweeping import SweepContract  # noqa: E402
from .waiting import WaitContract  # noqa: E402


class LedgerContract(
    EnqueueContract,
    ClaimContract,
    SettlingContract,
    HolderContract,
    MatrixContract,
    ReceiptContract,
    ArgumentContract,
    OperatorContract,
    AuditContract,
    SweepContract,
    LookingContract,
    WaitContract,
    OverviewContract,
    ScheduleContract,
    PauseContract,
    ConcurrencyContract,
    ProcessContract,
    MovingContract,
    CapabilityContract,
    JoinContract,
):
    """Every group in one class."""


__all__ = [
    "KEEPS_ALL",
    "KEEPS_LITTLE",
    "ArgumentContract",
    "AuditContract",
    "CapabilityContract",
    "ClaimContract",
    "ConcurrencyContract",
    "Contract",
    "EnqueueContract",
    "HolderContract",
    "JoinContract",
    "LedgerContract",
    "LookingContract",
    "MatrixContract",
    "ModelLedger",
    "ModelStore",
    "MovingContract",
    "NewStore",
    "OperatorContract",
    "OverviewContract",
    "PauseContract",
    "ProcessContract",
    "ReceiptContract",
    "ScheduleContract",
    "SettlingContract",
    "Store",
    "SweepContract",
    "WaitContract",
    "as_kept",
]
