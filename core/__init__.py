"""The public door of Fencepost's core: what programs import.

Each name is loaded from its own module when it is first asked for, so that a command pays only for what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .composition import load_effects
    from .errors import (
        EffectNotFound,
        FencepostError,
        Hold,
        IdentityConflict,
        InvalidInput,
        LeaseLost,
        LedgerBusy,
        LedgerCorrupt,
        LedgerError,
        LedgerFailed,
        LedgerReplaced,
        LedgerSealed,
        LedgerVersion,
        LimitExceeded,
        PluginError,
        ReceiptConflict,
        Reject,
        Retry,
        Signal,
        Unsupported,
    )
    from .ledgers.open import open_ledger
    from .ledgers.protocol import Ledger
    from .model.effect import Effect
    from .model.events import Event
    from .model.ids import unique_id
    from .model.inputs import Input, NewJob
    from .model.job import ClaimRequest, Job, Stamps
    from .model.query import JobQuery
    from .model.queue_counts import QueueCounts
    from .model.receipts import (
        Published,
        Receipt,
        Settled,
        Settlement,
    )
    from .model.records import (
        Applied,
        AuditEntry,
        Capabilities,
        Enqueued,
        Export,
        Fire,
        Page,
        Row,
        Schedule,
        Swept,
    )
    from .producer import Producer, open_producer
    from .worker.options import WorkerOptions
    from .worker.worker import Worker

_HOMES = {
    name: module
    for module, names in {
        "composition": ("load_effects",),
        "errors": (
            "EffectNotFound",
            "FencepostError",
            "Hold",
            "IdentityConflict",
            "InvalidInput",
            "LeaseLost",
            "LedgerBusy",
            "LedgerCorrupt",
            "LedgerError",
            "LedgerFailed",
            "LedgerReplaced",
            "LedgerSealed",
            "LedgerVersion",
            "LimitExceeded",
            "PluginError",
            "ReceiptConflict",
            "Reject",
            "Retry",
            "Signal",
            "Unsupported",
        ),
        "ledgers.open": ("open_ledger",),
        "ledgers.protocol": ("Ledger",),
        "model.effect": ("Effect",),
        "model.events": ("Event",),
        "model.ids": ("unique_id",),
        "model.inputs": ("Input", "NewJob"),
        "model.job": ("ClaimRequest", "Job", "Stamps"),
        "model.query": ("JobQuery",),
        "model.queue_counts": ("QueueCounts",),
        "model.receipts": ("Published", "Receipt", "Settled", "Settlement"),
        "model.records": (
            "Applied",
            "AuditEntry",
            "Capabilities",
            "Enqueued",
            "Export",
            "Fire",
            "Page",
            "Row",
            "Schedule",
            "Swept",
        ),
        "producer": ("Producer", "open_producer"),
        "worker.options": ("WorkerOptions",),
        "worker.worker": ("Worker",),
    }.items()
    for name in names
}

__all__ = [
    "Applied",
    "AuditEntry",
    "Capabilities",
    "ClaimRequest",
    "Effect",
    "EffectNotFound",
    "Enqueued",
    "Event",
    "Export",
    "FencepostError",
    "Fire",
    "Hold",
    "IdentityConflict",
    "Input",
    "InvalidInput",
    "Job",
    "JobQuery",
    "LeaseLost",
    "Ledger",
    "LedgerBusy",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerFailed",
    "LedgerReplaced",
    "LedgerSealed",
    "LedgerVersion",
    "LimitExceeded",
    "NewJob",
    "Page",
    "PluginError",
    "Producer",
    "Published",
    "QueueCounts",
    "Receipt",
    "ReceiptConflict",
    "Reject",
    "Retry",
    "Row",
    "Schedule",
    "Settled",
    "Settlement",
    "Signal",
    "Stamps",
    "Swept",
    "Unsupported",
    "Worker",
    "WorkerOptions",
    "load_effects",
    "open_ledger",
    "open_producer",
    "unique_id",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
