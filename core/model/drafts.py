"""Jobs as their producer writes them: relative times wait for the instant of the enqueue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import InvalidInput
from . import policy
from .durations import parse_span
from .inputs import NewJob, check_seconds


class Draft(NamedTuple):
    """A job to enqueue, and the times of it that count from its enqueue."""

    job: NewJob
    delay_s: float | None = None
    """Wins over the job's own run_at_ms."""
    expires_in_s: float | None = None
    """Wins over the job's own expires_at_ms."""

    @property
    def is_relative(self) -> bool:
        """Whether the job depends on the instant of its enqueue."""
        return self.delay_s is not None or self.expires_in_s is not None


def jobs_at(drafts: Iterable[Draft], now_ms: int) -> list[NewJob]:
    """The jobs of these drafts if they are enqueued at that instant, not yet checked."""
    return [policy.at(draft.job, now_ms, draft.delay_s, draft.expires_in_s) for draft in drafts]


def seconds(span: float | str | None, what: str) -> float | None:
    """Return a span in seconds, given as such a number or as text such as ``90s`` or ``1.5h``; None stays None.

    Raises:
        InvalidInput: it is neither; the message begins with ``what``.
    """
    if isinstance(span, str):
        return parse_span(span, what) / 1_000
    if span is not None and type(span) not in (int, float):
        raise InvalidInput(f"{what} must be a number of seconds or a span such as 90s, not {span!r:.40}")
    return check_seconds(span, what)
