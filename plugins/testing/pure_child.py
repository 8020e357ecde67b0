"""A process that calls a pure effect several times while the clock is stopped. Run by ``purity.py``."""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Final, Self

CALLS: Final = 12
"""How often each process asks: an effect that tosses a coin gives one answer throughout with a chance below 2^-30."""

_WRITES: Final = frozenset(
    {
        "ftplib.connect",
        "os.chmod",
        "os.chown",
        "os.exec",
        "os.fork",
        "os.link",
        "os.mkdir",
        "os.posix_spawn",
        "os.putenv",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.spawn",
        "os.symlink",
        "os.system",
        "os.truncate",
        "os.utime",
        "smtplib.connect",
        "socket.connect",
        "socket.sendto",
        "subprocess.Popen",
        "urllib.Request",
    }
)
"""Audit events of Python that change something outside, or ask somebody who may answer otherwise tomorrow."""


class Watch:
    """Notes what the process does to the outside world while it is switched on."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook."""
        if not self.on:
            return
        if event == "open":
            path, mode, flags = arguments
            writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            if writing or (isinstance(mode, str) and set(mode) & set("wax+")):
                self.seen.append(f"it opened {path} for writing")
        elif event == "sqlite3.connect" and arguments[0] != ":memory:":
            self.seen.append(f"it opened the database {arguments[0]}")
        elif event in _WRITES:
            self.seen.append(f"{event} {arguments!r:.200}")


def stop_the_clock(instant_s: float) -> None:
    """Let every look at the wall clock see the same instant; the monotonic clocks go on."""
    here = time.localtime(instant_s)

    class StoppedDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Self:
            return cls.fromtimestamp(instant_s, tz)

        @classmethod
        def utcnow(cls) -> Self:
            return cls.fromtimestamp(instant_s, datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Self:
            return cls.fromtimestamp(instant_s)

    class StoppedDate(datetime.date):
        @classmethod
        def today(cls) -> Self:
            return cls.fromtimestamp(instant_s)

    def filled(real: Callable[..., Any], *defaults: Any) -> Callable[..., Any]:
        """``real``, with the instant where it would look at the clock because an argument is left out."""
        return lambda *arguments: real(*arguments, *defaults[len(arguments) :])

    vars(time).update(
        time=lambda: instant_s,
        time_ns=lambda: int(instant_s * 1_000_000_000),
        localtime=filled(time.localtime, instant_s),
        gmtime=filled(time.gmtime, instant_s),
        ctime=filled(time.ctime, instant_s),
        asctime=filled(time.asctime, here),
        strftime=filled(time.strftime, "", here),
    )
    vars(datetime).update(datetime=StoppedDatetime, date=StoppedDate)


def main() -> None:
    """Ask the effect, and print its outcomes and what it did besides."""
    orders = json.loads(sys.stdin.readline())
    watch = Watch()
    sys.addaudithook(watch)
    stop_the_clock(orders["clock"])

    from ...core.model.documents import canonical
    from .subject import load_subject

    outcomes = []
    with redirect_stdout(sys.stderr):  # an effect may print; stdout is for the answer
        effect = load_subject(orders).effect
        for _ in range(CALLS):
            watch.on = True
            outcome = effect.outcome(orders["text"])
            watch.on = False
            outcomes.append(canonical(outcome))
    print(json.dumps({"outcomes": outcomes, "wrote": watch.seen}))


if __name__ == "__main__":
    main()
