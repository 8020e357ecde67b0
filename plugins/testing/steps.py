"""Follows an effect through its own code: the calls that it makes to the outside, its lines, and its network traffic.

At each of these steps a worker can be stopped or given a fault, whether the author has put a mark there or not. Each
kind of step has its numbers, from 0 on, in the order in which one attempt comes to them.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, TypeAlias

from .handlers import Handlers, made_like

Reach: TypeAlias = Callable[[str, int, str], None]
"""Told each step: its kind, its number and what it is; it stops the worker there, or raises a fault."""

COMPUTES: Final = frozenset(
    {
        "builtins",
        "_abc",
        "_asyncio",
        "_bisect",
        "_collections",
        "_collections_abc",
        "_contextvars",
        "_datetime",
    }
    | {
        "_decimal",
        "_functools",
        "_hashlib",
        "_heapq",
        "_json",
        "_operator",
        "_random",
        "_sre",
        "_struct",
        "_thread",
    }
    | {
        "_weakref",
        "abc",
        "base64",
        "binascii",
        "bisect",
        "codecs",
        "collections",
        "contextlib",
        "contextvars",
        "copy",
    }
    | {
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fencepost",
        "fractions",
        "functools",
        "gc",
        "hashlib",
        "hmac",
    }
    | {
        "heapq",
        "inspect",
        "itertools",
        "json",
        "logging",
        "math",
        "numbers",
        "operator",
        "pluggy",
        "random",
        "re",
    }
    | {
        "secrets",
        "string",
        "struct",
        "sys",
        "textwrap",
        "threading",
        "time",
        "types",
        "typing",
        "unicodedata",
        "uuid",
    }
    | {
        "warnings",
        "weakref",
        "zlib",
        "zoneinfo",
        "email",
        "encodings",
        "importlib",
        "locale",
        "posixpath",
        "sre_compile",
    }
)
"""Modules whose functions only compute: the outside world is the same before and after a call of them."""
FILES: Final = frozenset({"_io", "io", "posix", "nt", "os", "pathlib", "shutil", "tempfile"})
"""Modules whose functions reach files. A receiver that does not answer is never met there."""
_PATHS_REACH: Final = frozenset(
    {
        "exists",
        "glob",
        "hardlink_to",
        "is_dir",
        "is_file",
        "iterdir",
        "mkdir",
        "open",
        "read_bytes",
        "read_text",
    }
    | {"rename", "replace", "rmdir", "stat", "symlink_to", "touch", "unlink", "write_bytes", "write_text"}
)
"""The methods of a ``Path`` that reach the file system."""
_LIBRARIES: Final = tuple(
    {
        os.path.join(os.path.realpath(path), "")
        for path in map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
    }
)


class Author:
    """Tells the author's code from everybody else's: the plugin's package, and what lies outside of the libraries."""

    def __init__(self, plugin: object) -> None:
        module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
        parts = module.split(".")
        self._package = ".".join(parts[:2]) if parts[0] == "fencepost" else parts[0]
        self._known: dict[CodeType, bool] = {}

    def wrote(self, frame: FrameType) -> bool:
        """Whether the frame runs code of the author."""
        code = frame.f_code
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = self._judge(frame.f_globals.get("__name__"), code.co_filename)
        return known

    def _judge(self, module: object, path: str) -> bool:
        name = module if isinstance(module, str) else ""
        if name == self._package or name.startswith(self._package + "."):
            return True
        if name.partition(".")[0] in ("fencepost", "pluggy") or not os.path.isfile(path):
            return False
        real = os.path.realpath(path)
        return not real.startswith(_LIBRARIES) and "-packages" + os.sep not in real


@contextmanager
def followed(author: Author, reach: Reach, *, lines: bool) -> Iterator[None]:
    """Within the block ``reach`` is told of this thread's steps; of lines only where they are asked for."""
    profile, trace = sys.getprofile(), sys.gettrace()
    sockets = _Sockets(reach)
    sys.setprofile(_Calls(author, reach))
    if lines:
        sys.settrace(_Lines(author, reach))
    try:
        with sockets.patched():
            yield
    finally:
        sys.settrace(trace)
        sys.setprofile(profile)


class _Calls:
    """A profile function: each call out of the author's code that may reach the outside world."""

    def __init__(self, author: Author, reach: Reach) -> None:
        self._author = author
        self._reach = reach
        self._number = -1
        self._handlers = Handlers()
        self._expectations = -1
        self._open: list[tuple[FrameType | None, object, int, str]] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        self._step(frame, event, argument)
        caller = frame if event == "c_return" else frame.f_back if event == "return" else None
        if caller is not None and self._author.wrote(caller):
            self._expected(caller)

    def _expected(self, caller: FrameType) -> None:
        """A call has returned where the author's code expects a time-out of a class of its own or of a library."""
        for kind in self._handlers.time_outs(caller):
            self._expectations += 1
            where = f"line {caller.f_lineno} of {os.path.basename(caller.f_code.co_filename)}"
            try:
                self._tell("expected", self._expectations, f"the call in {where}, with {kind.__name__}")
            except TimeoutError as fault:
                raise made_like(kind, fault) from None

    def _step(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" or event == "call":
            caller = frame if event == "c_call" else frame.f_back
            name = None
            if caller is not None and self._author.wrote(caller):
                if event == "c_call":
                    name = _outside(_home(argument), argument.__name__)
                elif not self._author.wrote(frame):
                    name = _outside(str(frame.f_globals.get("__name__")), frame.f_code.co_name)
            if name is not None:
                assert caller is not None
                self._number += 1
                what = f"{name} in line {caller.f_lineno} of {os.path.basename(caller.f_code.co_filename)}"
                callee = argument if event == "c_call" else frame
                self._open.append((caller, callee, self._number, what))
                self._tell("call", self._number, what)
        elif self._open and event in ("c_return", "c_exception", "return"):
            caller, callee, number, what = self._open[-1]
            if callee is (frame if event == "return" else argument):
                self._open.pop()
                if event != "c_exception":
                    self._tell("answer", number, what)

    def _tell(self, kind: str, number: int, what: str) -> None:
        try:
            self._reach(kind, number, what)
        except BaseException:
            # Python would take the profile function away at once; so nothing else follows this fault.
            self._open.clear()
            raise


class _Lines:
    """A trace function: each line of the author's code."""

    def __init__(self, author: Author, reach: Reach) -> None:
        self._author = author
        self._reach = reach
        self._number = -1

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _Lines | None:
        if not self._author.wrote(frame):
            return None
        if event == "line":
            self._number += 1
            what = f"line {frame.f_lineno} of {os.path.basename(frame.f_code.co_filename)}"
            self._reach("line", self._number, what)
        return self


class _Sockets:
    """Each connection, and each first answer after something was sent, over Python's sockets."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._connections = -1
        self._answers = -1
        self._asked = False

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Within the block the sockets of the process go through here."""
        undo: list[Callable[[], None]] = []
        for kind in (socket.socket, ssl.SSLSocket):
            for name, wrap in (
                ("connect", self._connect),
                ("send", self._send),
                ("sendall", self._send),
                ("recv", self._receive),
                ("recv_into", self._receive),
            ):
                own = vars(kind).get(name)
                setattr(kind, name, wrap(getattr(kind, name)))
                undo.append(_restore(kind, name, own))
        try:
            yield
        finally:
            for one in undo:
                one()

    def _connect(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def connect(this: socket.socket, address: Any) -> Any:
            self._connections += 1
            self._reach("connection", self._connections, f"the connection to {address!r:.80}")
            return real(this, address)

        return connect

    def _send(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def send(this: socket.socket, *arguments: Any) -> Any:
            self._asked = True
            return real(this, *arguments)

        return send

    def _receive(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def receive(this: socket.socket, *arguments: Any) -> Any:
            answer = real(this, *arguments)
            if self._asked:
                self._asked = False
                self._answers += 1
                self._reach("received", self._answers, "the answer of the network")
            return answer

        return receive


def _restore(kind: type, name: str, own: object) -> Callable[[], None]:
    return lambda: delattr(kind, name) if own is None else setattr(kind, name, own)


def _home(function: Any) -> str:
    """The module of a function that is written in C; of a method that of its object's type."""
    this = getattr(function, "__self__", None)
    if this is None or isinstance(this, ModuleType):
        return str(getattr(function, "__module__", None) or getattr(this, "__name__", "builtins"))
    return str((this if isinstance(this, type) else type(this)).__module__)


def _outside(module: str, name: str) -> str | None:
    """The call's name if it may reach the outside world; None if it only computes."""
    top = module.partition(".")[0]
    if top in COMPUTES or (top == "pathlib" and name not in _PATHS_REACH):
        return None
    if name.startswith("__") and name not in ("__call__", "__enter__", "__exit__", "__init__"):
        return None
    if name.startswith("<"):  # a comprehension, a lambda, the body of a module
        return None
    return f"{module}.{name}"


def reaches_files(what: str) -> bool:
    """Whether a step, as it is described, is a call that reaches a file."""
    return what.partition(".")[0] in FILES
