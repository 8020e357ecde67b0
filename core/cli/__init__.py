"""The command line: the one place where ledgers, plugins and the worker meet.

JSON goes to stdout, everything else to stderr. Exit status 0, or 1 for any failure, or 86 for an injected crash.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback

from ..errors import FencepostError
from .garbage import wait_while_starting
from .ui.output import replace_unprintable, unwritable

DEBUG_ENV = "FENCEPOST_DEBUG"
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Such an error without a file's name is about stdout: ledgers translate the errors of their own files."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command that the arguments name, and exit."""
    wait_while_starting()
    arguments = sys.argv[1:] if arguments is None else arguments
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in ours or bool(os.environ.get(DEBUG_ENV))
    arguments = [argument for argument in ours if argument != "--debug"] + arguments[len(ours) :]
    if sys.stderr is None:
        # Where stderr is closed Python has no object for it, and print(file=None) would write to stdout.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the program
    if sys.stdout is None:
        sys.exit(
            _failed(
                "stdout is closed; nothing was done. Send it somewhere, for example >/dev/null", debug=debug
            )
        )
    replace_unprintable()
    sys.exit(_flushed(_run(arguments, debug=debug), debug=debug))


def _run(arguments: list[str], *, debug: bool) -> int:
    from .app import app  # makes most of the objects that wait_while_starting is for

    try:
        app(args=arguments, prog_name="fencepost")
    except SystemExit as stop:
        # Usage errors are 2 with the library, and 1 here, as every failure is.
        return (
            stop.code if stop.code in (0, 86) and isinstance(stop.code, int) else int(stop.code is not None)
        )
    except FencepostError as error:
        return _failed(str(error), debug=debug)
    except BrokenPipeError:
        return 1  # the reader of our output has gone, and needs no message
    except OSError as error:
        message = (
            str(unwritable(error))
            if error.filename is None and error.errno in _UNWRITABLE
            else _unexpected(error)
        )
        return _failed(message, debug=debug)
    except Exception as error:  # noqa: BLE001 - people get a line, not a traceback; --debug has the rest
        return _failed(_unexpected(error), debug=debug)
    return 0


def _unexpected(error: Exception) -> str:
    return f"unexpected {type(error).__name__}: {error}; run with --debug for the traceback, and please report it"


def _flushed(status: int, *, debug: bool) -> int:
    """Write what is left in the buffer of stdout, and return the exit status that follows."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status == 0 and not isinstance(error, BrokenPipeError):
            _failed(str(unwritable(error)), debug=debug)
        return status or 1
    return status


def _failed(message: str, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"fencepost: {message}", file=sys.stderr)
    return 1
