"""The terminal in full-screen mode; it is restored at the end, also after an error, a signal or a stop."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Self

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
"""Switches to the alternate screen, which keeps what was shown before, and hides the cursor."""
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"

_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Screen:
    """The terminal of stdout in full-screen mode. Use it in the main thread, where signals arrive."""

    def __init__(self) -> None:
        self.ended = False
        """A signal has asked for the end."""
        self._in: Final = sys.stdin.fileno() if sys.stdin and sys.stdin.isatty() else None
        self._mode: list[Any] | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._woken, self._wake = -1, -1
        self._wakeup_before = -1

    def __enter__(self) -> Self:
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        self._wakeup_before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        try:
            for number in _ENDS:
                self._handle(number, self._end)
            self._handle(signal.SIGTSTP, self._stop)
            self._handle(signal.SIGWINCH, lambda number, frame: None)
            self._enter_screen()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    @property
    def size(self) -> tuple[int, int]:
        """The columns and lines of the terminal now."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def show(self, lines: Sequence[str]) -> None:
        """Draw these lines over the screen."""
        body = f"{_REST_OF_LINE}\r\n".join(lines)
        self._write(f"{_HOME}{body}{_REST_OF_LINE}{_REST_OF_SCREEN}")

    def wait(self, timeout_s: float) -> str:
        """Wait for a key, a signal or the time-out, and return the keys that were pressed."""
        watched = [self._woken] if self._in is None else [self._woken, self._in]
        ready, _, _ = select.select(watched, [], [], timeout_s)
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 1_024)
        if self._in is None or self._in not in ready:
            return ""
        data = os.read(self._in, 1_024)
        if not data:
            self.ended = True  # the terminal is gone
        return data.decode("utf-8", "replace")

    # -- entering and leaving full-screen mode --

    def _enter_screen(self) -> None:
        if self._in is not None:
            self._mode = termios.tcgetattr(self._in)
            tty.setcbreak(self._in, termios.TCSADRAIN)
        self._write(_ENTER)

    def _leave_screen(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            self._write(_LEAVE)
        if self._in is not None and self._mode is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._in, termios.TCSADRAIN, self._mode)
            self._mode = None

    def _restore(self) -> None:
        self._leave_screen()
        for number, before in self._handlers.items():
            signal.signal(number, before)
        self._handlers.clear()
        signal.set_wakeup_fd(self._wakeup_before)
        for descriptor in (self._woken, self._wake):
            os.close(descriptor)

    # -- signals --

    def _handle(self, number: signal.Signals, handler: Callable[[int, FrameType | None], None]) -> None:
        self._handlers[number] = signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.ended = True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: restore the terminal, stop the process, and enter again when the shell continues it."""
        self._leave_screen()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stop)
        self._enter_screen()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
