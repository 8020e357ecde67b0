"""Starts the workers of a scenario as real processes, and says what each of them did."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Self

TIMEOUT_S: Final = 60.0
"""How long one worker may take for its attempts before it counts as hanging."""


class KitFailed(Exception):
    """The scenario could not be played; that says nothing about the effect's promise yet."""


class WorkerHost:
    """A process that has imported Fencepost, and forks one worker after another."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - __exit__ closes it
        with theirs:
            self._process = subprocess.Popen(
                # -P: a file of the working folder that is named like a module must not take its place.
                [sys.executable, "-P", "-m", "fencepost.plugins.testing.host", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
            )
        self._answers = self._channel.makefile("r", encoding="ascii")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._answers.close()
        self._channel.close()
        self._process.wait()
        self._errors.close()

    def fork(self, stdin: int, stdout: int, stderr: int) -> int:
        """Fork a worker with these descriptors; its process id."""
        return self._ask(b"fork", [stdin, stdout, stderr])

    def wait(self, pid: int) -> int:
        """Wait until the worker has ended; its exit status, negative for a signal."""
        return self._ask(f"wait {pid}".encode(), [])

    def _ask(self, message: bytes, descriptors: list[int]) -> int:
        try:
            socket.send_fds(self._channel, [message], descriptors)
            answer = self._answers.readline()
        except (BrokenPipeError, ConnectionResetError):
            answer = ""
        if not answer:
            self._process.wait()
            self._errors.seek(0)
            raise KitFailed(
                f"the process that starts the workers ended: {self._errors.read().strip()[-2000:]}"
            )
        return int(answer)


class WorkerProcess:
    """One worker that makes one attempt, or one at each of two jobs."""

    def __init__(self, host: WorkerHost, orders: Mapping[str, Any]) -> None:
        self._host = host
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - __exit__ closes it
        their_orders, self._orders = os.pipe()
        self._reported, their_reports = os.pipe()
        try:
            self._pid = host.fork(their_orders, their_reports, self._errors.fileno())
        finally:
            os.close(their_orders)
            os.close(their_reports)
        self._unread = b""
        self._status: int | None = None
        self._hung = False
        self._timer = threading.Timer(TIMEOUT_S, self._give_up)
        self._timer.start()
        self.reports: list[dict[str, Any]] = []
        self._say(json.dumps(orders))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        self._reap(kill=True)  # it is still there only if the scenario broke off and nobody lets it go on
        os.close(self._orders)
        os.close(self._reported)
        self._errors.close()

    def until_reached(self) -> bool:
        """Wait until it stops where it was told to; False if it ended without that."""
        return self._read(None, for_stop=True)

    def until_quiet(self, quiet_s: float) -> None:
        """Wait until it has ended, or has reported nothing for that long: then it waits for somebody."""
        told = -1
        while not self._ended and told < len(self.reports):
            told = len(self.reports)
            self._read(quiet_s, for_stop=False)

    def go_on(self) -> None:
        """Let it leave the place where it stalls."""
        self._say("")

    def end(self) -> list[dict[str, Any]]:
        """Wait for its end, and give all that it reported.

        Raises:
            KitFailed: it ended otherwise than it should, or hung.
        """
        while self._read(None, for_stop=True):
            pass
        status = self._reap(kill=False)
        self._timer.cancel()
        self._errors.seek(0)
        said = self._errors.read().strip()[-2000:]
        if self._hung:
            raise KitFailed(f"the worker did not finish its attempt within {TIMEOUT_S:g} seconds")
        killed = status == -signal.SIGKILL and "reached" in (self.reports or [{}])[-1]
        if status != 0 and not killed:
            raise KitFailed(f"the worker process ended with status {status}: {said or 'it said nothing'}")
        return self.reports

    # -- private --

    _ended = False

    def _read(self, within_s: float | None, *, for_stop: bool) -> bool:
        """Read reports until one says ``reached`` (True), or its end, or the time is over (False)."""
        until = None if within_s is None else time.monotonic() + within_s
        while not self._ended:
            while b"\n" in self._unread:
                line, _, self._unread = self._unread.partition(b"\n")
                self.reports.append(json.loads(line))
                if for_stop and "reached" in self.reports[-1]:
                    return True
            left_s = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._reported], [], [], left_s)[0]:
                return False
            more = os.read(self._reported, 65_536)
            self._unread += more
            self._ended = not more
        return False

    def _say(self, line: str) -> None:
        unsent = (line + "\n").encode()
        try:
            while unsent:
                unsent = unsent[os.write(self._orders, unsent) :]
        except BrokenPipeError:  # it has ended already; how, is seen at its end
            pass

    def _give_up(self) -> None:
        self._hung = True
        self._kill()

    def _kill(self) -> None:
        if self._status is None:  # until the host has waited for it, nobody else has its id
            os.kill(self._pid, signal.SIGKILL)

    def _reap(self, *, kill: bool) -> int:
        if self._status is None:
            if kill:
                self._kill()
            self._status = self._host.wait(self._pid)
        return self._status
