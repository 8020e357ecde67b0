"""Running commands inside the test's process: quick, and enough where no crash and no terminal is tested."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.core import (
    ClaimRequest,
    Ledger,
    NewJob,
    Receipt,
    Settlement,
    open_ledger,
)
from fencepost.core.cli import main
from fencepost.core.model.clock import logical
from fencepost.core.model.inputs import text_sha256


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


def run(*arguments: str, stdin: bytes = b"") -> Ended:
    """Run one command whose stdin and stdout are no terminal."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with a_process_of_its_own(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(list(arguments))
                status = 0
            except SystemExit as stop:
                status = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdin = before
    out.flush()
    return Ended(status, out.buffer.getvalue().decode(), err.getvalue())  # type: ignore[attr-defined]


@contextlib.contextmanager
def a_process_of_its_own() -> Iterator[None]:
    """Put back what a command changes in its process for good: log handlers, hooks and signal handlers."""
    loggers = [logging.getLogger(), logging.getLogger("fencepost.cli")]
    logs = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    hooks = threading.excepthook, sys.unraisablehook
    signals = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for logger, handlers, level, propagate in logs:
            logger.handlers, logger.level, logger.propagate = handlers, level, propagate
        logging.captureWarnings(False)
        threading.excepthook, sys.unraisablehook = hooks
        for number, handler in signals:
            signal.signal(number, handler)


def refused(*arguments: str, stdin: bytes = b"") -> str:
    """What a command says that must fail: exit 1, nothing on stdout, no traceback."""
    ended = run(*arguments, stdin=stdin)
    assert (ended.status, ended.out) == (1, ""), ended
    assert ended.err.strip()
    assert "Traceback" not in ended.err
    return ended.err


@dataclass(frozen=True)
class Program:
    """Commands on one store."""

    store: str

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Any:
        """The document that a command prints; it must succeed without a word on stderr."""
        ended = run(*arguments, "--store", self.store, stdin=stdin)
        assert (ended.status, ended.err) == (0, ""), ended
        return json.loads(ended.out)

    def refused(self, *arguments: str, stdin: bytes = b"") -> str:
        """What it says when it must fail."""
        return refused(*arguments, "--store", self.store, stdin=stdin)

    def ledger(self, now_ms: int = 0) -> Ledger:
        """The store, opened by the test itself, on a clock that stands still."""
        return open_ledger(self.store, clock=logical(now_ms))

    def enqueue(self, *ids: str, now_ms: int = 0, **options: Any) -> None:
        """Jobs with these ids."""
        with self.ledger() as ledger:
            ledger.enqueue([NewJob(id, f"text of {id}", **options) for id in ids], now_ms=now_ms)

    def claim(self, *, now_ms: int, lease_ms: int = 10, limit: int = 1, **options: Any) -> list[str]:
        """Claim jobs, and never come back."""
        defaults: dict[str, Any] = {"claimant": "w1", "max_attempts": 3}
        with self.ledger() as ledger:
            jobs = ledger.claim(
                ClaimRequest(lease_ms=lease_ms, limit=limit, **(defaults | options)), now_ms=now_ms
            )
        return [job.id for job in jobs]

    def bury(self, *ids: str, error: str = "ValueError: no", now_ms: int = 0) -> None:
        """Claim these queued jobs, and fail them."""
        with self.ledger() as ledger:
            for job in ledger.claim(
                ClaimRequest(claimant="w1", lease_ms=10, max_attempts=3, limit=100), now_ms=now_ms
            ):
                if job.id in ids:
                    assert ledger.fail(job.id, job.version, error=error, now_ms=now_ms)
                else:
                    assert ledger.release(job.id, job.version, now_ms=now_ms)

    def hold(self, id: str, *, error: str = "outcome unknown", now_ms: int = 0) -> None:
        """Claim this one queued job, start it, and hold it."""
        with self.ledger() as ledger:
            (job,) = ledger.claim(ClaimRequest(claimant="w1", lease_ms=10, max_attempts=3), now_ms=now_ms)
            assert job.id == id
            assert ledger.begin(id, job.version, now_ms=now_ms)
            assert ledger.hold(id, job.version, error=error, now_ms=now_ms)

    def complete(self, *, now_ms: int = 0) -> None:
        """Claim one job, and complete it with its receipt."""
        with self.ledger() as ledger:
            (job,) = ledger.claim(ClaimRequest(claimant="w1", lease_ms=10, max_attempts=3), now_ms=now_ms)
            text = f"text of {job.id}"
            done = Receipt(job.id, text_sha256(text), {"bytes": len(text), "words": 3})
            (settled,) = ledger.settle([Settlement(job.id, job.version, done)], now_ms=now_ms)
            assert settled.completed
