"""The log of a worker's process on stderr: every record, whoever writes it, in one format."""

from __future__ import annotations

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from typing import Any, Final

from ...model.texts import headline
from ...worker.context import CURRENT_JOB
from ..ui.output import WARNINGS

_log = logging.getLogger("fencepost.worker")

TEXT: Final = "%(asctime)s %(levelname)-7s %(message)s"


def set_up_logs(log_format: str, *, level: str) -> None:
    """Send every log record of this process to stderr, as one JSON object a line or as text.

    The records of effects and of the libraries that they use are among them, as are Python's warnings and the errors
    that end a thread. Called before any plugin is loaded, so that a handler which a plugin adds stays.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines(TEXT))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    threading.excepthook = _log_thread_error
    sys.unraisablehook = _log_unraisable
    if log_format == "json":  # what a command says to a person is a record like any other
        WARNINGS.handlers, WARNINGS.propagate = [handler], False


class JsonLines(logging.Formatter):
    """One JSON object a log line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **attempt_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """A line for people, with the attempt at its end."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and the traceback under it."""
        record.message = _message(record)
        record.asctime = self.formatTime(record)
        marks = " ".join(f"{name}={value}" for name, value in attempt_of(record).items())
        lines = [self.formatMessage(record) + (f" [{marks}]" if marks else "")]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        if record.stack_info:
            lines.append(self.formatStack(record.stack_info))
        return "\n".join(lines)


def attempt_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return which attempt this record was written in; empty outside an attempt."""
    job = CURRENT_JOB.get()
    if job is not None:
        return {
            "id": job.id,
            "effect": job.effect,
            "queue": job.queue,
            "fence": job.version,
            "attempt": job.attempts,
        }
    # In a thread that the effect has started, request.log still knows whose it is.
    told = {name: getattr(record, extra, None) for name, extra in (("id", "job"), ("fence", "fence"))}
    return told if record.name.startswith(_log.name) and None not in told.values() else {}


def _message(record: logging.LogRecord) -> str:
    """Return the message; a wrong format of somebody's is no reason to print something else than a record."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - a wrong format, or whatever an argument's __str__ raises
        return f"{record.msg} (its arguments do not fit: {headline(error)})"


def _log_thread_error(dying: threading.ExceptHookArgs) -> None:
    if dying.exc_value is None or dying.exc_type is SystemExit:
        return
    name = dying.thread.name if dying.thread else "a thread"
    _log.error(
        "the thread %s has ended with an error",
        name,
        exc_info=(dying.exc_type, dying.exc_value, dying.exc_traceback),
    )


def _log_unraisable(failed: sys.UnraisableHookArgs) -> None:
    error = failed.exc_value
    _log.error(
        "%s",
        failed.err_msg or "an exception that nobody can catch",
        exc_info=None if error is None else (type(error), error, failed.exc_traceback),
    )
