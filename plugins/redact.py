"""Secrets: settings that an effect uses and that nothing else ever shows."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, quote_plus

from ..core.model.texts import headline
from .rules import is_fault

HIDDEN: Final = "***"
SHORTEST_SECRET: Final = 6
"""Anything shorter would be found in texts that have nothing to do with it."""


class Secret(str):
    """A string whose ``repr`` hides it, so that a printed mapping or dataclass does not show it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


class Redactor:
    """Replaces a set of secrets by ``***`` wherever text leaves an effect."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Replace these from now on, too."""
        known = {*self._secrets, *(form for secret in secrets if secret for form in _forms(str(secret)))}
        # The longest first, so that one secret which contains another goes as a whole.
        self._secrets = sorted(known, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def text(self, text: str) -> str:
        """``text`` without any of the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value without any of the secrets, keys included; other values are left as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(member) for member in value]
        return value

    def where(self, value: Any, path: str = "") -> str | None:
        """Where in a JSON value a secret is, such as ``answer.headers``; None if none is in it."""
        if isinstance(value, str):
            return path or "the value" if self.text(value) != value else None
        if isinstance(value, Mapping):
            for key, member in value.items():
                here = f"{path}.{self.value(key)}" if path else str(self.value(key))
                found = here if self.value(key) != key else self.where(member, here)
                if found is not None:
                    return found
        if isinstance(value, list | tuple):
            for place, member in enumerate(value):
                if (found := self.where(member, f"{path}[{place}]")) is not None:
                    return found
        return None

    def error(self, error: BaseException) -> BaseException:
        """The same exception without any of the secrets, causes and notes included, where that is possible.

        An exception that makes up its message from something else than its arguments gives way to a plain one.
        """
        try:
            return self._cleaned(error)
        except BaseException as fault:
            # What an author's __str__ or __repr__ raises must not take the error's place.
            if not is_fault(fault):
                raise
            return RuntimeError(f"{type(error).__name__} (its message could not be read)")

    def _cleaned(self, error: BaseException) -> BaseException:
        for link in _chain(error):
            link.args = tuple(map(self._argument, link.args))
            if getattr(link, "__notes__", None):
                link.__notes__ = [self.text(note) for note in link.__notes__]
            if any(self.text(shown) != shown for shown in (str(link), repr(link))):
                plain = RuntimeError(self.text(f"{type(link).__name__}: {link}"))
                plain.__suppress_context__ = True
                return plain
        return error

    def _argument(self, part: object) -> object:
        """An argument of an exception: one that shows a secret gives way to its text, so that the class can stay."""
        if all(self.text(shown) == shown for shown in (str(part), repr(part))):
            return part
        return self.text(str(part))

    def clean(self, record: logging.LogRecord) -> bool:
        """Take the secrets out of a log record; always true, so that it is a filter for a log handler."""
        if self._secrets:
            record.msg, record.args = self.text(_formatted(record.msg, record.args)), ()
            if record.exc_info and record.exc_info[1] is not None:
                error = self.error(record.exc_info[1])
                record.exc_info = (type(error), error, error.__traceback__)
        return True

    @contextmanager
    def cleaning_logs(self) -> Iterator[None]:
        """Within the block no secret is in the text of a log line or in the traceback of a thread that dies."""
        make, last_words = logging.getLogRecordFactory(), threading.excepthook

        def make_clean(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            self.clean(record)
            return record

        def speak_clean(dying: threading.ExceptHookArgs) -> None:
            error = None if dying.exc_value is None else self.error(dying.exc_value)
            kind = dying.exc_type if error is None else type(error)
            last_words(threading.ExceptHookArgs((kind, error, dying.exc_traceback, dying.thread)))

        logging.setLogRecordFactory(make_clean)
        threading.excepthook = speak_clean
        try:
            yield
        finally:
            logging.setLogRecordFactory(make)
            threading.excepthook = last_words

    def log(self, log: logging.Logger | logging.LoggerAdapter[Any]) -> logging.LoggerAdapter[Any]:
        """A logger that passes on everything but the secrets."""
        return _RedactingLog(log, self)


def _forms(secret: str) -> Iterator[str]:
    """The secret as it is written in plain text, in JSON, in a ``repr``, in a URL and in base64; its lines, too."""
    yield from _written(secret)
    raw = secret.encode("utf-8", "surrogateescape")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        yield from (part for part in _inside_base64(raw, encode) if len(part) >= SHORTEST_SECRET)
    lines = secret.splitlines()
    for line in map(str.strip, lines if len(lines) > 1 else []):
        if len(line) >= SHORTEST_SECRET and not line.startswith(
            "-----"
        ):  # such a line says only what kind of key it is
            yield from _written(line)


def _written(secret: str) -> list[str]:
    return [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        quote(secret, safe="", errors="surrogateescape"),
        quote(secret, errors="surrogateescape"),
        quote_plus(secret, errors="surrogateescape"),
    ]


def _inside_base64(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """What the base64 of any longer text shows of the bytes in it, such as of a password after ``user:``.

    It depends on how many bytes come before them, by 3; characters that neighbours have a part in are left out.
    """
    for before in range(3):
        whole, rest = divmod(before + len(raw), 3)
        first = (0, 2, 3)[before]
        yield encode(bytes(before) + raw).decode()[first : whole * 4 + rest]


class _RedactingLog(logging.LoggerAdapter[Any]):
    def __init__(self, log: logging.Logger | logging.LoggerAdapter[Any], redactor: Redactor) -> None:
        super().__init__(log)
        self._redactor = redactor

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if not self.isEnabledFor(level):
            return
        # The text is put together here: an argument may show a secret only once it is formatted.
        named = len(args) == 1 and isinstance(args[0], Mapping) and args[0]
        text = _formatted(msg, args[0] if named else args)
        failure = kwargs.get("exc_info")
        if isinstance(failure, BaseException):
            kwargs["exc_info"] = self._redactor.error(failure)
        elif failure:
            kwargs["exc_info"] = None
            text = f"{text} ({_current_error()})"
        self.logger.log(level, "%s", self._redactor.text(text), **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs


def _formatted(msg: object, args: object) -> str:
    """The text of a log line. As with any logger, a wrong format is no reason for the work to fail."""
    try:
        return str(msg) % args if args else str(msg)
    except BaseException as error:  # a wrong format, or whatever an argument's __str__ raises
        if not is_fault(error):
            raise
        return f"{_shown(msg)} {_shown(args)} (a wrong format: {type(error).__name__})"


def _shown(value: object) -> str:
    try:
        return str(value)
    except BaseException as error:  # as above
        if not is_fault(error):
            raise
        return f"<{type(value).__name__} that cannot be shown>"


def _current_error() -> str:
    import sys

    error = sys.exception()
    return "no error" if error is None else headline(error)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if any(link is known for known in found):
            continue
        found.append(link)
        waiting += [next for next in (link.__cause__, link.__context__) if next is not None]
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
    return found
