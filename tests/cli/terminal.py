"""Commands on a pseudo-terminal: what a person would see, and how the terminal is left."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyte

from tests.programs import FENCEPOST

TIMEOUT_S = 60.0
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"


SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = subprocess.Popen(sys.argv[1:], process_group=0, restore_signals=True)
while True:
    os.tcsetpgrp(0, child.pid)
    os.kill(child.pid, signal.SIGCONT)
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
    print("stopped", flush=True)
    assert sys.stdin.readline() == "fg\\n"
"""
"""What a shell does for one job: nobody but a shell's children can be stopped by Ctrl-Z."""


class Terminal:
    """A program with a terminal of its own; used as a context manager, which ends it."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        lines: int = 24,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        program: Sequence[str] = FENCEPOST,
        stdout: Any = None,
    ) -> None:
        self._master, slave = os.openpty()
        self.slave = slave
        self.resize(columns, lines, tell=False)
        self.mode = termios.tcgetattr(slave)
        self.output = b""
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        unset = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
        given = {name: value for name, value in os.environ.items() if name not in unset}
        self.process = subprocess.Popen(
            [*program, *arguments],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            cwd=cwd,
            env=given | {"TERM": "xterm-256color"} | (env or {}),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self._master)

    def press(self, keys: str) -> None:
        """What the person types."""
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int, *, tell: bool = True) -> None:
        """Make the window another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if tell:
            self.screen.resize(lines, columns)

    def read(self) -> None:
        """Take in what the program has written so far, without waiting for more."""
        while select.select([self._master], [], [], 0)[0]:
            data = os.read(self._master, 65_536)
            self.output += data
            self._stream.feed(data)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Read until it holds."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.read()
            if holds():
                return
            assert time.monotonic() < deadline, f"{what} never came; the screen is:\n{self.text}"
            select.select([self._master], [], [], 0.05)

    def until_shown(self, words: str) -> None:
        """Read until these words are on the screen."""
        self.until(lambda: words in self.text, repr(words))

    def end(self) -> int:
        """Read to the end of the program; its exit status."""
        self.until(lambda: self.process.poll() is not None, "the end")
        self.read()
        assert self.process.returncode is not None
        return self.process.returncode

    @property
    def text(self) -> str:
        """The screen, without what is blank at the end of a line or of the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n")

    @property
    def left_as_found(self) -> bool:
        """Whether the terminal is as it was: its mode, its first screen, its cursor."""
        return (
            termios.tcgetattr(self.slave) == self.mode
            and self.output.count(ENTER) == self.output.count(LEAVE)
            and self.output.rfind(LEAVE) >= self.output.rfind(ENTER)
            and self.output.rfind(SHOW_CURSOR) >= self.output.rfind(HIDE_CURSOR)
        )
