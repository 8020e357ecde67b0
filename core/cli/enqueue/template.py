"""The options of ``enqueue`` that apply to every job it makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ...config import Config
from ...errors import InvalidInput
from ...model import policy
from ...model.inputs import Input, NewJob, check_job
from ...model.job import Stamps


@dataclass(frozen=True, slots=True)
class Template:
    """A job without its id and its text. Relative times are seconds, counted from the time of the enqueue."""

    queue: str
    effect: str
    priority: int
    run_at_ms: int | None
    delay_s: float | None
    expires_in_s: float | None
    stamps: Stamps

    @property
    def is_relative(self) -> bool:
        """Whether the jobs depend on the time at which they are made."""
        return self.delay_s is not None or self.expires_in_s is not None

    def check(self, now_ms: int) -> None:
        """Raise InvalidInput for an option that is wrong for every record; the message names no record."""
        check_job(self.jobs([Input("a", "")], now_ms)[0])

    def jobs(self, inputs: Iterable[Input], now_ms: int) -> list[NewJob]:
        """Make the jobs of these inputs, without checking them."""
        run_at_ms = policy.run_at(now_ms, delay_s=self.delay_s, run_at_ms=self.run_at_ms)
        expires_at_ms = policy.expires_at(now_ms, expires_in_s=self.expires_in_s)
        return [
            NewJob(
                item.id,
                item.text,
                queue=self.queue,
                effect=self.effect,
                priority=self.priority,
                run_at_ms=run_at_ms,
                expires_at_ms=expires_at_ms,
                stamps=self.stamps,
            )
            for item in inputs
        ]


def instant_ms(text: str, what: str) -> int:
    """Parse an instant in ISO 8601 with its time zone, or in milliseconds since the epoch; ``what`` names the option.

    Raises:
        InvalidInput: it is neither.
    """
    if text.isascii() and text.isdigit():
        if len(text) == len("20261231") and text[:2] in ("19", "20"):  # milliseconds of an afternoon in 1970?
            raise InvalidInput(f"{what} {text!r}: for a day write {text[:4]}-{text[4:6]}-{text[6:]}T00:00Z")
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{what} {text!r}: neither ISO 8601 nor milliseconds since the epoch") from error
    if when.tzinfo is None:
        example = when.isoformat(timespec="auto" if when.second or when.microsecond else "minutes")
        raise InvalidInput(f"{what} {text!r}: name the time zone, for example {example}Z")
    return round(when.timestamp() * 1_000)


def stamps_for(config: Config, queue: str, stamps: Stamps) -> Stamps:
    """Return the stamps given; for each that is not given, the one of the queue in ``fencepost.toml``."""
    return policy.with_defaults(stamps, config.stamps_of(queue))
