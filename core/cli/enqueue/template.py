"""The options of ``enqueue`` that apply to every job it makes."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.drafts import Draft, jobs_at
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

    def check(self, now_ms: int) -> None:
        """Raise InvalidInput for an option that no record could have; the message names no record."""
        check_job(jobs_at([self.draft(Input("a", ""))], now_ms)[0])

    def draft(self, item: Input) -> Draft:
        """The job of this input, not yet checked."""
        job = NewJob(
            item.id,
            item.text,
            queue=self.queue,
            effect=self.effect,
            priority=self.priority,
            run_at_ms=self.run_at_ms,
            stamps=self.stamps,
        )
        return Draft(job, self.delay_s, self.expires_in_s)
