"""JSON Lines: any number of records, read one by one and stored in requests of a thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import IO, Final, NamedTuple

from ...errors import (
    FencepostError,
    IdentityConflict,
    InvalidInput,
    LimitExceeded,
)
from ...ledgers.protocol import Ledger
from ...model.documents import MAX_DOCUMENT_BYTES, parse
from ...model.inputs import Input, parse_record
from ...producer import Producer
from .formats import named_format
from .template import Template

REQUEST_LINES: Final = 1_000
REQUEST_BYTES: Final = 8 * 1024 * 1024
"""A request is shorter where its texts are long, so that memory stays flat."""

SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class Line:
    """One record, and the number of its line."""

    number: int
    input: Input


class Request(NamedTuple):
    """Some records to be stored at once; ``lines`` has equal ones once, and ``records`` counts all of them."""

    lines: list[Line]
    records: int


class Stored(NamedTuple):
    """How many records there were, and how many of them were new; the ledger had the others already."""

    records: int
    new: int


def requests(stream: IO[bytes], *, what: str, check: Callable[[str], None]) -> Iterator[Request]:
    """Read the records, and yield them in requests.

    Raises:
        InvalidInput: a line is no record, or the effect refuses its text; names the line.
    """
    request: dict[str, Line] = {}
    size = number = records = 0
    while data := stream.readline(MAX_DOCUMENT_BYTES + 1):
        number += 1
        if data.isspace():
            continue
        with nullcontext() if records else named_format(data, what=what, wanted="lines"):
            line = Line(number, _record(data, f"{what}: line {number}", check))
        before = request.setdefault(line.input.id, line)
        if before.input != line.input:
            raise IdentityConflict(
                f"{what}: line {number}: the id {line.input.id!r} is bound to another text in line {before.number}"
            )
        size += len(data)
        records += 1
        if len(request) == REQUEST_LINES or size >= REQUEST_BYTES:
            yield Request(list(request.values()), records)
            request, size, records = {}, 0, 0
    if request:
        yield Request(list(request.values()), records)


def enqueue_lines(
    producer: Producer,
    batches: Iterator[Request],
    template: Template,
    *,
    what: str,
    now_ms: int | None,
    report: Callable[[int], None],
) -> Stored:
    """Store every request.

    Raises:
        FencepostError: a line cannot be stored; the message names it, and says what was stored before.
    """
    count = new = 0
    try:
        for lines, records in batches:
            try:
                answers = producer.store((template.draft(line.input) for line in lines), now_ms=now_ms)
            except IdentityConflict as error:
                raise _located(producer.ledger, lines, template.effect, what, error) from error
            count += records
            new += sum(answer.created for answer in answers)
            report(count)
    except FencepostError as error:
        before = f"the {count:,} records before its request are stored" if count else "nothing was stored"
        raise type(error)(
            f"{error}; {before}. Mend it and run the same command again: what is stored is passed over"
        ) from error
    return Stored(count, new)


def _record(data: bytes, where: str, check: Callable[[str], None]) -> Input:
    try:
        if len(data) > MAX_DOCUMENT_BYTES:
            raise LimitExceeded(f"more than {MAX_DOCUMENT_BYTES:,} bytes, the most that one line may have")
        found = parse_record(parse(data, what="this line"))
        check(found.text)
    except InvalidInput as error:
        reason = str(error).removeprefix("this line: ").removesuffix(" (line 1)")
        raise type(error)(f"{where}: {reason}") from error
    return found


def _located(
    ledger: Ledger, lines: list[Line], effect: str, what: str, error: IdentityConflict
) -> IdentityConflict:
    """Return the same conflict with the number of the line that causes it."""
    stored = ledger.read_inputs([line.input.id for line in lines])
    for line in lines:
        known = stored.get(line.input.id)
        if known is None:
            continue
        job = ledger.get_job(line.input.id)
        if known != line.input or (job is not None and job.effect != effect):
            return IdentityConflict(f"{what}: line {line.number}: {error}")
    return error
