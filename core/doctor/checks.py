"""What is wrong with the jobs of a ledger, from one walk over its entries: pure, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..ledgers.inspection import Content, Entry, Finding
from ..model.documents import JSON, canonical, compact
from ..model.durations import FIRST_WALL_MS, words
from ..model.job import (
    COMPLETED,
    DEFAULT_EFFECT,
    HELD,
    QUEUED,
    RUNNING,
    Job,
    expired,
    lapsed,
    purgeable,
)
from ..model.receipts import Receipt

LATE_MS: Final = 5 * 60_000
"""A worker that is alive acts on a lapsed lease or an expiry far sooner."""
WAITING_MS: Final = 10 * 60_000
"""Jobs that are ready for longer, while no worker is on any such job, are a finding."""
AHEAD_MS: Final = 60_000
"""How far two clocks may differ before leases and delays are off."""
LONGEST_LEASE_MS: Final = 24 * 3_600_000
EXAMPLES: Final = 5

Count: TypeAlias = Callable[[str], Mapping[str, JSON]]
"""What the default effect says of a text: its rule is frozen, so every receipt of it can be computed again."""


def latest_move_ms(job: Job) -> int | None:
    """By what a ledger's own clock has written, if it keeps any of it; run_at and expiry are anybody's wish."""
    instants = (job.enqueued_at_ms, job.claimed_at_ms, job.started_at_ms, job.completed_at_ms, job.died_at_ms)
    return max((at_ms for at_ms in instants if at_ms is not None), default=None)


@dataclass
class Tally:
    """How many entries a check has found, and the first few of them."""

    count: int = 0
    ids: list[str] = field(default_factory=list)

    def add(self, id: str) -> None:
        """One more."""
        self.count += 1
        if len(self.ids) < EXAMPLES:
            self.ids.append(id)

    def finding(self, check: str, problem: str, remedy: str) -> Finding:
        """As a finding."""
        return Finding(check, problem, remedy, tuple(self.ids), self.count)


_ALONE: Final = {
    "job-without-input": (
        "jobs without an input: nobody can work on them",
        "restore the inputs from a back-up",
    ),
    "input-without-job": (
        "inputs without a job: their enqueue was cut off",
        "enqueue the same texts again, which adopts them; or leave them, they do no harm",
    ),
    "receipt-without-job": (
        "receipts without a job",
        "find out where they come from: the parts of this ledger are not of one piece",
    ),
    "completed-without-receipt": (
        "completed jobs without a receipt: nothing proves that their effect was applied",
        "restore the receipts from a back-up",
    ),
    "unreadable": (
        "jobs of which the input or the receipt cannot be read",
        "restore them from a back-up",
    ),
    "receipt-differs": (
        "receipts that are not of their input: the digest or the id differs",
        "trust neither; compare both with a back-up before you touch them",
    ),
    "held": (
        "jobs held until a person decides",
        "see why: fencepost jobs list --state held; then fencepost jobs resolve ID",
    ),
    "expired-unswept": (
        f"jobs that expired more than {words(LATE_MS)} ago and are not buried: no worker serves them",
        "fencepost sweep, or run a worker with --follow, which sweeps",
    ),
    "retention-ended": (
        f"dead jobs that should have been purged more than {words(LATE_MS)} ago: nobody sweeps",
        "fencepost sweep, or run a worker with --follow, which sweeps",
    ),
    "clock-ahead": (
        "jobs touched in the future, seen from this clock: it was set back, or machines differ",
        "set the clocks by NTP; until this one has caught up, leases and delays end late",
    ),
    "long-lease": (
        f"jobs whose lease ends more than {words(LONGEST_LEASE_MS)} from now",
        "a clock was wrong when they were claimed, or it is meant so; fencepost jobs cancel ID frees one",
    ),
    "mixed-clocks": (
        "jobs touched by a logical clock (--now-ms), in a ledger where others were touched by a real one",
        "use one clock in a ledger: logical instants are long past for the real one",
    ),
}


def _worker(queue: str, effect: str) -> str:
    """The remedy of jobs that nobody works on."""
    command = f"start a worker: fencepost worker --follow --queue {queue} --effect {effect}"
    return (
        command if effect == DEFAULT_EFFECT else f"{command} (where the plugin with that effect is installed)"
    )


class Examination:
    """One walk: ``look`` at every entry, ``compare`` what contents were read, then ask for ``findings``."""

    def __init__(
        self,
        *,
        now_ms: int,
        paused: list[str],
        count: Count,
        lacks_settings: Callable[[str], str | None] = lambda effect: None,
    ) -> None:
        """``lacks_settings`` says which settings an effect requires and has not where the doctor runs."""
        self._lacks_settings = lacks_settings
        self._ready: dict[str, Tally] = {}
        self._now_ms = now_ms
        self._paused = frozenset(paused)
        self._count = count
        self._alone: dict[str, Tally] = {}
        self._lapsed: dict[tuple[str, str], Tally] = {}
        self._waiting: dict[tuple[str, str], Tally] = {}
        self._in_pause: dict[str, Tally] = {}
        self._serving: set[tuple[str, str]] = set()
        self._miscounted = Tally()
        self._miscounted_first = ""
        self._logical = Tally()
        self._real = 0
        self.entries = 0
        self.receipts = 0

    def look(self, entry: Entry) -> None:
        """Take one entry into account."""
        id, job, purged, has_input, has_receipt = entry
        self.entries += 1
        self.receipts += has_receipt
        if job is None:
            if not purged:
                self._add("receipt-without-job" if has_receipt else "input-without-job", id)
            return
        if not has_input:
            self._add("job-without-input", id)
        if job.state == COMPLETED:  # most are, where there are many
            if not has_receipt:
                self._add("completed-without-receipt", id)
        elif job.state == HELD:
            self._add("held", id)
        elif job.state in (QUEUED, RUNNING):
            self._look_at_live(job)
        elif purgeable(job, self._now_ms - LATE_MS):
            self._add("retention-ended", id)
        self._look_at_clocks(job)

    def compare(self, content: Content) -> None:
        """Check a receipt against the input that it is of."""
        if content.fault is not None:
            self._add("unreadable", content.id)
        elif content.input is not None and content.receipt is not None:
            receipt = content.receipt
            if receipt.id != content.id or receipt.input_sha256 != content.input.sha256:
                self._add("receipt-differs", content.id)
            elif receipt.effect == DEFAULT_EFFECT:
                self._count_again(receipt, content.input.text)

    def findings(self) -> Iterator[Finding]:
        """Everything that was found, each kind once."""
        if self._real and self._logical.count:
            self._alone["mixed-clocks"] = self._logical
        for check, (problem, remedy) in _ALONE.items():
            if check in self._alone:
                yield self._alone[check].finding(check, problem, remedy)
        if self._miscounted.count:
            yield self._miscounted.finding(
                "outcome-differs",
                f"receipts of the effect {DEFAULT_EFFECT!r} whose figures are not those of their input "
                f"({self._miscounted_first})",
                "compare both with a back-up, and restore the one that was altered; a worker that meets such a job "
                "does not complete it",
            )
        for (queue, effect), tally in sorted(self._lapsed.items()):
            yield tally.finding(
                "stuck-running",
                f"running jobs of the queue {queue!r} and the effect {effect!r} whose lease ended more than "
                f"{words(LATE_MS)} ago: nobody claims from there",
                _worker(queue, effect),
            )
        for (queue, effect), tally in sorted(self._waiting.items()):
            if (queue, effect) not in self._serving:
                yield tally.finding(
                    "stuck-queued",
                    f"queued jobs of the queue {queue!r} and the effect {effect!r} that have been ready for more "
                    f"than {words(WAITING_MS)}, the threshold, while no worker is on any such job",
                    _worker(queue, effect),
                )
        served = {effect for _, effect in self._serving}
        for effect, tally in sorted(self._ready.items()):
            if effect not in served and (lack := self._lacks_settings(effect)) is not None:
                yield tally.finding(
                    "effect-without-settings",
                    f"ready jobs of the effect {effect!r}, which lacks settings here, and which no worker is on",
                    f"{lack}; where its workers have them, nothing is wrong",
                )
        for queue, tally in sorted(self._in_pause.items()):
            yield tally.finding(
                "paused",
                f"ready jobs of the queue {queue!r}, which is paused",
                f"fencepost queues resume {queue}, unless the pause is still meant",
            )

    # -- one job --

    def _count_again(self, receipt: Receipt, text: str) -> None:
        found = self._count(text)
        if canonical(receipt.outcome) != canonical(found):
            self._miscounted.add(receipt.id)
            if self._miscounted.count == 1:
                self._miscounted_first = (
                    f"{receipt.id} has {compact(receipt.outcome)}, it should be {compact(found)}"
                )

    def _look_at_live(self, job: Job) -> None:
        now_ms, lane = self._now_ms, (job.queue, job.effect)
        if expired(job, now_ms - LATE_MS):
            self._add("expired-unswept", job.id)
        elif lapsed(job, now_ms - LATE_MS):
            self._lapsed.setdefault(lane, Tally()).add(job.id)
        elif job.state == RUNNING:
            if not lapsed(job, now_ms):
                self._serving.add(lane)
            longest_ms = max(job.stamps.visibility_timeout_ms or 0, LONGEST_LEASE_MS)
            if job.lease_until_ms > now_ms + longest_ms:
                self._add("long-lease", job.id)
        elif job.run_at_ms is None or job.run_at_ms <= now_ms:
            since_ms = job.enqueued_at_ms if job.run_at_ms is None else job.run_at_ms
            if job.queue in self._paused:
                self._in_pause.setdefault(job.queue, Tally()).add(job.id)
                return
            self._ready.setdefault(job.effect, Tally()).add(job.id)
            if since_ms is not None and since_ms <= now_ms - WAITING_MS:
                self._waiting.setdefault(lane, Tally()).add(job.id)

    def _look_at_clocks(self, job: Job) -> None:
        latest_ms = latest_move_ms(job)
        if latest_ms is None:
            return
        if latest_ms < FIRST_WALL_MS:
            self._logical.add(job.id)
        else:
            self._real += 1
        if latest_ms > self._now_ms + AHEAD_MS:
            self._add("clock-ahead", job.id)

    def _add(self, check: str, id: str) -> None:
        self._alone.setdefault(check, Tally()).add(id)
