"""Starts the workers of a scenario as real processes, and says what each of them did."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, Final, Self

TIMEOUT_S: Final = 60.0
"""How long one worker may take for its one attempt before it counts as hanging."""


class KitFailed(Exception):
    """The scenario could not be played; that says nothing about the effect's promise yet."""


class WorkerProcess:
    """One worker that makes one attempt."""

    def __init__(self, orders: Mapping[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - __exit__ closes it
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "fencepost.plugins.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )
        self._timer = threading.Timer(TIMEOUT_S, self._process.kill)
        self._timer.start()
        self.reports: list[dict[str, Any]] = []
        self._say(json.dumps(orders))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        self._process.kill()  # does nothing, unless the scenario broke off and nobody lets it go on
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()

    def until_reached(self) -> bool:
        """Wait until it stalls where it was told to; False if it ended without getting there."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.reports.append(json.loads(line))
            if "reached" in self.reports[-1]:
                return True
        return False

    def go_on(self) -> None:
        """Let it leave the place where it stalls."""
        self._say("")

    def end(self) -> list[dict[str, Any]]:
        """Wait for its end, and give all that it reported.

        Raises:
            KitFailed: it ended otherwise than it should, or hung.
        """
        assert self._process.stdout is not None
        self.reports += [json.loads(line) for line in self._process.stdout]
        status = self._process.wait()
        hung = not self._timer.is_alive()
        self._timer.cancel()
        self._errors.seek(0)
        said = self._errors.read().strip()[-2000:]
        if hung:
            raise KitFailed(f"the worker did not finish its attempt within {TIMEOUT_S:g} seconds")
        killed = status == -signal.SIGKILL and "reached" in (self.reports or [{}])[-1]
        if status != 0 and not killed:
            raise KitFailed(f"the worker process ended with status {status}: {said or 'it said nothing'}")
        return self.reports

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it has ended already; how, is seen at its end
            pass
