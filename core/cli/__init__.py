"""The command line: the one place where ledgers, plugins and the worker meet.

JSON goes to stdout, everything else to stderr. Exit status 0, or 1 for any failure, or 86 for an injected crash.
"""

from __future__ import annotations

import os
import sys
import traceback

from ..errors import FencepostError

DEBUG_ENV = "FENCEPOST_DEBUG"


def main(arguments: list[str] | None = None) -> None:
    """Run the command that the arguments name, and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in ours or bool(os.environ.get(DEBUG_ENV))
    arguments = [argument for argument in ours if argument != "--debug"] + arguments[len(ours) :]
    sys.exit(_run(arguments, debug=debug))


def _run(arguments: list[str], *, debug: bool) -> int:
    from .app import app

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
        # Whoever read our output has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - people get a line, not a traceback; --debug has the rest
        return _failed(
            f"unexpected {type(error).__name__}: {error}; run with --debug for the traceback, and please report it",
            debug=debug,
        )
    return 0


def _failed(message: str, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"fencepost: {message}", file=sys.stderr)
    return 1
