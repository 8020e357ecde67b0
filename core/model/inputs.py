"""What comes in: the rules of docs/reference/contract/limits.md §3, and the values that pass them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from ..errors import InvalidInput, LimitExceeded
from .checks import MAX_INT, MAX_SPAN_MS, check_int, figure
from .documents import parse
from .job import (
    DEFAULT_EFFECT,
    DEFAULT_QUEUE,
    NO_STAMPS,
    Job,
    Stamps,
)

MAX_TEXT_BYTES: Final = 1_000_000
MAX_RECORDS: Final = 10_000
PRIORITIES: Final = (-(2**31), 2**31 - 1)
MAX_SCHEDULE_NAME: Final = 50

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,63}", re.ASCII)
_NAME_RULE: Final = "must match [a-z][a-z0-9-]{0,63}: a lower-case letter, then up to 63 of a-z, 0-9 and -"


class Input(NamedTuple):
    """The immutable text that an id permanently binds."""

    id: str
    text: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the text's UTF-8 bytes, in lower-case hex."""
        return text_sha256(self.text)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue. Times are milliseconds since the epoch; relative ones are resolved one layer up."""

    id: str
    text: str
    queue: str = DEFAULT_QUEUE
    effect: str = DEFAULT_EFFECT
    priority: int = 0
    run_at_ms: int | None = None
    expires_at_ms: int | None = None
    stamps: Stamps = NO_STAMPS

    def queued(self, *, enqueued_at_ms: int | None, version: int = 0) -> Job:
        """The job right after its enqueue."""
        return Job(
            id=self.id,
            version=version,
            queue=self.queue,
            effect=self.effect,
            priority=self.priority,
            run_at_ms=self.run_at_ms,
            expires_at_ms=self.expires_at_ms,
            enqueued_at_ms=enqueued_at_ms,
            stamps=self.stamps.whole(),
        )


def text_sha256(text: str) -> str:
    """SHA-256 of the UTF-8 bytes, in lower-case hex."""
    digest: str = _sha256()(text.encode("utf-8")).hexdigest()
    return digest


@cache
def _sha256() -> Callable[[bytes], Any]:
    # Loading OpenSSL takes a while, and most commands need no digest.
    from hashlib import sha256

    return sha256


def is_name(value: object) -> bool:
    """Whether ``value`` can be an id, a queue or an effect."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def check_name(value: object, what: str) -> str:
    """Return ``value`` if it can be an id, a queue or an effect; ``what`` names it in the error."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise InvalidInput(f"{what} {_brief(value)}: {_NAME_RULE}")


def check_schedule_name(value: object) -> str:
    """Return ``value`` if it can name a schedule: short enough that ``<name>-<ms>`` is still an id."""
    name = check_name(value, "schedule name")
    if len(name) > MAX_SCHEDULE_NAME:
        raise LimitExceeded(
            f"schedule name {_brief(name)}: {len(name)} characters, at most {MAX_SCHEDULE_NAME} are allowed"
        )
    return name


def check_text(value: object, what: str = "text") -> str:
    """Return ``value`` if UTF-8 can carry it within the limit."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {_type(value)}")
    if len(value) * 4 <= MAX_TEXT_BYTES and value.isascii():
        return value
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} has a lone surrogate at character {error.start}, which UTF-8 cannot carry"
        ) from error
    if size > MAX_TEXT_BYTES:
        raise LimitExceeded(f"{what} has {size:,} UTF-8 bytes, at most {MAX_TEXT_BYTES:,} are allowed")
    return value


Seconds = TypeVar("Seconds", bound=float | None)


def check_seconds(value: Seconds, what: str) -> Seconds:
    """Return ``value`` if it is a span of 0 seconds or more that can be carried, or None."""
    if value is None or 0 <= value * 1_000 <= MAX_SPAN_MS:
        return value
    if value * 1_000 > MAX_SPAN_MS:
        raise InvalidInput(
            f"{what} is {figure(value)}: more seconds than the {MAX_SPAN_MS // 1_000:,} of 100 years"
        )
    # Below 0, or NaN, which is neither.
    raise InvalidInput(f"{what} is {figure(value)}, it must be a number of seconds of 0 or more")


def check_stamps(stamps: Stamps) -> Stamps:
    """Return ``stamps`` if each is in its range: seconds more than 0 (retention 0 or more), attempts 1 or more."""
    for field in fields(stamps):
        value = getattr(stamps, field.name)
        if value is None:
            continue
        if field.name == "max_attempts":
            check_int(value, "max_attempts", low=1)
            continue
        if type(value) not in (int, float):
            raise InvalidInput(f"{field.name} must be a number of seconds, not {_type(value)}")
        if not -MAX_INT <= value * 1_000 <= MAX_SPAN_MS:  # which NaN is not either
            raise InvalidInput(
                f"{field.name} is {figure(value)}: it must be a number of seconds, at most the "
                f"{MAX_SPAN_MS // 1_000:,} of 100 years"
            )
        if value < 0 or (value == 0 and field.name != "dead_letter_retention_s"):
            least = "0 or more" if field.name == "dead_letter_retention_s" else "more than 0"
            raise InvalidInput(f"{field.name} is {value}, it must be {least}")
    return stamps


def check_job(job: NewJob) -> NewJob:
    """Return ``job`` if every field keeps its rule."""
    check_name(job.id, "id")
    check_text(job.text)
    if job.queue != DEFAULT_QUEUE:
        check_name(job.queue, "queue")
    if job.effect != DEFAULT_EFFECT:
        check_name(job.effect, "effect")
    if job.priority != 0 or type(job.priority) is not int:
        check_int(job.priority, "priority", low=PRIORITIES[0], high=PRIORITIES[1])
    if job.run_at_ms is not None:
        check_int(job.run_at_ms, "run_at_ms")
    if job.expires_at_ms is not None:
        check_int(job.expires_at_ms, "expires_at_ms")
    if job.stamps is not NO_STAMPS:
        if not isinstance(job.stamps, Stamps):
            raise InvalidInput(f"stamps must be Stamps, not {_type(job.stamps)}")
        check_stamps(job.stamps)
    return job


class Request(tuple[NewJob, ...]):
    """Jobs that ``check_request`` has checked together; only that function makes one."""

    __slots__ = ()


def check_request(jobs: Iterable[NewJob]) -> Request:
    """One request, whole or not at all: 1 to 10,000 records, each valid, their ids distinct.

    What is a ``Request`` already is not checked again.

    Raises:
        InvalidInput: names the record by its place and id, and the rule that it breaks.
    """
    if isinstance(jobs, Request):
        return jobs
    if isinstance(jobs, NewJob):
        raise InvalidInput("a request is a list of jobs: write [job] for one")
    request = list(jobs)
    if not request:
        raise InvalidInput("the request holds no records; 1 to 10,000 are allowed")
    if len(request) > MAX_RECORDS:
        raise LimitExceeded(
            f"the request holds {len(request):,} records, at most {MAX_RECORDS:,} are allowed"
        )
    seen: dict[str, int] = {}
    for place, job in enumerate(request, 1):
        if not isinstance(job, NewJob):
            raise InvalidInput(f"record {place} must be a NewJob, not {_type(job)}")
        try:
            check_job(job)
        except InvalidInput as error:
            raise type(error)(f"record {place}{_called(job.id)}: {error}") from error
        first = seen.setdefault(job.id, place)
        if first != place:
            raise InvalidInput(f"record {place} (id {job.id!r}): the id stands already in record {first}")
    return Request(request)


def parse_record(value: object) -> Input:
    """One record ``{"id", "text"}``: both present, both strings, nothing else."""
    if not isinstance(value, dict):
        raise InvalidInput(f"must be an object with id and text, not {_type(value)}")
    for key in ("id", "text"):
        if key not in value:
            raise InvalidInput(f"{key!r} is missing")
        if not isinstance(value[key], str):
            raise InvalidInput(f"{key!r} must be a string, not {_type(value[key])}")
    unknown = sorted(set(value) - {"id", "text"})
    if unknown:
        raise InvalidInput(f"the field {unknown[0]!r} is unknown; a record has exactly id and text")
    return Input(check_name(value["id"], "id"), check_text(value["text"]))


def parse_request(data: bytes, *, what: str) -> list[Input]:
    """The records of one enqueue document; ``what`` names it in errors.

    Raises:
        InvalidInput: names the record by its place, and the rule that it breaks.
    """
    document = parse(data, what=what)
    if not isinstance(document, list):
        raise InvalidInput(f"{what}: must be a JSON array of {{id, text}}, not {_type(document)}")
    inputs = []
    for place, value in enumerate(document, 1):
        try:
            inputs.append(parse_record(value))
        except InvalidInput as error:
            called = _called(value.get("id")) if isinstance(value, dict) else ""
            raise type(error)(f"{what}: record {place}{called}: {error}") from error
    return inputs


def _called(id: object) -> str:
    """Names a record by its id, unless the id itself is what the error is about."""
    return f" (id {_brief(id)})" if is_name(id) else ""


def _brief(value: object) -> str:
    if not isinstance(value, str):
        return _type(value)
    return ascii(value if len(value) <= 70 else value[:67] + "...")


def _type(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    names |= {int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)
