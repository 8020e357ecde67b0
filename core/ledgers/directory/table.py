"""The jobs of a directory ledger in memory: every entry, its encoded row, and what a claim looks at.

A table is read from ``jobs.json`` once and changed along with it. The ready list and the watch set spare a
claim from looking at jobs that nothing can happen to; the rules themselves are those of ``job.py``.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ...errors import InvalidInput
from ...model import job as moves
from ...model.job import (
    DEAD,
    QUEUED,
    REAP_LIMIT,
    RUNNING,
    ClaimRequest,
    Job,
)
from ...model.texts import storable
from .pages import Pages
from .rows import (
    Purged,
    decode,
    encode,
    kept,
)

SHORT_ERROR_BYTES: Final = 80
CLAIM_ROOM_BYTES: Final = 64
"""By how much the row of a running job may grow until it is finished; a claim leaves room for that."""

_Place = tuple[int, int, int, str]


class Table:
    """All entries in order of enqueue. ``changed`` says whether the file still holds the same."""

    def __init__(self, entries: Iterable[Job | Purged]) -> None:
        self.jobs: dict[str, Job] = {}
        self.purged: dict[str, int] = {}
        self.changed = False
        self._pages = Pages()
        self._running = 0
        self._order: dict[str, int] = {}
        self._last = 0
        self._ready: list[_Place] = []
        self._watched: dict[str, None] = {}
        for entry in entries:
            if isinstance(entry, Purged):
                self.add_purged(entry)
            else:
                self.add(entry)
        self.changed = False

    @classmethod
    def read(cls, data: bytes, *, where: str) -> Table:
        """The table of a file's bytes."""
        return cls(decode(data, where=where))

    # -- changing --

    def add(self, job: Job) -> None:
        """Append a new job; a purged id that it takes up again moves to the end."""
        if self.purged.pop(job.id, None) is not None:
            self._pages.drop(self._order.pop(job.id))
        self._append(job.id)
        self._enter(job)

    def add_purged(self, entry: Purged) -> None:
        """Append an id of which only the version is kept."""
        self._append(entry.id)
        self.purged[entry.id] = entry.version
        self._write(entry.id, encode(entry))

    def put(self, job: Job) -> None:
        """Replace the stored job of the same id by this one."""
        self._leave(self.jobs[job.id])
        self._enter(job)

    def purge(self, id: str) -> None:
        """Remove the job, and keep its id and version."""
        job = self.jobs.pop(id)
        self._leave(job)
        self.purged[id] = job.version
        self._write(id, encode(Purged(id, job.version)))

    # -- claiming --

    def reap(self, request: ClaimRequest, *, now_ms: int, has_receipt: Callable[[str], bool]) -> None:
        """Apply what time has ended of the jobs that the claim serves; at most 1,000, the longest passed first."""
        due: list[tuple[int, int, Job]] = []
        for id in self._watched:
            job = self.jobs[id]
            if not request.serves(job):
                continue
            answered = job.started_at_ms is not None and moves.lapsed(job, now_ms) and has_receipt(id)
            if settled := moves.reap(job, request, now_ms=now_ms, has_receipt=answered):
                due.append((moves.reap_due_ms(job, now_ms), self._order[id], settled))
        due.sort(key=lambda entry: entry[:2])
        for _, _, settled in due[:REAP_LIMIT]:
            self.put(settled)

    def claim(
        self, request: ClaimRequest, *, now_ms: int, room_bytes: int, paused: frozenset[str] = frozenset()
    ) -> list[Job]:
        """Take ready jobs in the order of claims, as many as the file has room for until they are finished."""
        taken: list[Job] = []
        wanted = min(request.limit, len(self._ready)) + self._running
        self._shrink(room_bytes - wanted * CLAIM_ROOM_BYTES)
        room = room_bytes - self.size - self._running * CLAIM_ROOM_BYTES
        for _, _, _, id in self._ready:
            if len(taken) == request.limit or room < CLAIM_ROOM_BYTES:
                break
            job = self.jobs[id]
            if job.queue in paused:
                continue
            if request.serves(job) and (claimed := moves.claim(job, request, now_ms=now_ms)):
                taken.append(claimed)
                room -= CLAIM_ROOM_BYTES
        for claimed in taken:
            self.put(claimed)
        return taken

    # -- writing --

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._pages.size

    def document(self, max_bytes: int) -> bytes:
        """The file's bytes, made to fit ``max_bytes``."""
        self._shrink(max_bytes)
        return self._pages.document()

    def _shrink(self, max_bytes: int) -> None:
        """Shorten last errors, then drop them, while the file would pass ``max_bytes``.

        The instant of death goes last, and only of dead jobs that are kept for ever: nothing depends on it.
        """
        for shortened in (_short_error, _no_error, _no_instant_of_death):
            if self.size <= max_bytes:
                return
            for job in list(self.jobs.values()):
                if (shorter := shortened(job)) is not job:
                    self.put(shorter)

    def in_order(self) -> Iterator[Job]:
        """All jobs in order of enqueue, purged ids left out."""
        return (self.jobs[id] for id in self._order if id in self.jobs)

    def order_of(self, id: str) -> int:
        """A number that grows in order of enqueue.

        Raises:
            InvalidInput: there is no such id.
        """
        try:
            return self._order[id]
        except KeyError as error:
            raise InvalidInput(
                f"there is no job {id!r} to go on after: give the cursor that the page before returned, or begin anew"
            ) from error

    # -- the indexes --

    def _append(self, id: str) -> None:
        self._last += 1
        self._order[id] = self._last

    def _enter(self, job: Job) -> None:
        job = kept(job)
        self.jobs[job.id] = job
        self._write(job.id, encode(job))
        if job.state == RUNNING:
            self._running += 1
            self._watched[job.id] = None
        elif job.state == QUEUED:
            bisect.insort(self._ready, self._place(job))
            if job.attempts or job.expires_at_ms is not None:
                self._watched[job.id] = None

    def _leave(self, job: Job) -> None:
        self._watched.pop(job.id, None)
        if job.state == RUNNING:
            self._running -= 1
        elif job.state == QUEUED:
            del self._ready[bisect.bisect_left(self._ready, self._place(job))]

    def _place(self, job: Job) -> _Place:
        return (*moves.claim_order(job), self._order[job.id], job.id)

    def _write(self, id: str, row: bytes) -> None:
        self._pages.put(self._order[id], row)
        self.changed = True


def _short_error(job: Job) -> Job:
    if job.last_error is None or len(job.last_error) <= SHORT_ERROR_BYTES:
        return job
    return job._replace(last_error=storable(job.last_error, SHORT_ERROR_BYTES))


def _no_error(job: Job) -> Job:
    return job if job.last_error is None else job._replace(last_error=None)


def _no_instant_of_death(job: Job) -> Job:
    if job.state != DEAD or job.stamps.dead_letter_retention_s is not None or job.died_at_ms is None:
        return job
    return job._replace(died_at_ms=None)
