"""The producer: programs enqueue through it as the command ``enqueue`` does, by the rules of fencepost.toml."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from .composition import Effects
from .config import Config, load
from .errors import InvalidInput
from .ledgers.open import open_ledger
from .ledgers.protocol import Ledger
from .model import policy
from .model.clock import wall_ms
from .model.drafts import Draft, jobs_at, seconds
from .model.inputs import NewJob, Request, check_request
from .model.records import Enqueued
from .stores import store_name

_log: Final = logging.getLogger("fencepost.producer")


class Producer:
    """Enqueues jobs: their effects check the texts, queues give their stamps, relative times become instants.

    ``open_producer`` makes one. Threads may share it, and a process may fork.
    """

    def __init__(self, store: str, config: Config, effects: Effects) -> None:
        """The effects stay the caller's to close."""
        self._name = store
        self._ledger: Ledger | None = None
        self._config = config
        self._effects = effects
        self._checks: dict[str, Callable[[str], None]] = {}
        self._lock = threading.RLock()
        self._while_open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the ledger, and of the effects that ``open_producer`` has loaded."""
        if self._ledger is not None:
            self._ledger.close()
        self._while_open.close()

    @property
    def ledger(self) -> Ledger:
        """The ledger, for every other verb; it is opened, and made if it is absent, when it is first asked for."""
        with self._lock:
            if self._ledger is None:
                self._ledger = open_ledger(self._name)
            return self._ledger

    def enqueue(
        self,
        jobs: Iterable[NewJob],
        *,
        delay: float | str | None = None,
        expires_in: float | str | None = None,
        connection: Any = None,
        now_ms: int | None = None,
    ) -> list[Enqueued]:
        """Store all of the jobs, or none; a known id with the same text and effect is left as it is.

        Args:
            jobs: 1 to 10,000 of them.
            delay: seconds, or a span such as ``"90s"``, before which none of the jobs runs.
            expires_in: seconds, or a span, after which a job that is not completed dies.
            connection: the caller's own transaction, which the jobs then come with, or not at all.
            now_ms: the instant of the enqueue, for tests; the ledger's own clock unless given.

        Raises:
            InvalidInput: a job breaks a rule, or its effect refuses its text; nothing was stored.
            IdentityConflict: an id is bound to another text or effect; nothing was stored.
        """
        delay_s, expires_in_s = seconds(delay, "delay"), seconds(expires_in, "expires_in")
        if expires_in_s == 0:
            raise InvalidInput("expires_in is 0, it must be more than 0: such a job could never run")
        drafts = [Draft(job, delay_s, expires_in_s) for job in check_request(jobs)]
        return self.enqueue_drafts(drafts, connection=connection, now_ms=now_ms)

    def enqueue_drafts(
        self, drafts: Sequence[Draft], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        """As ``enqueue``, of jobs each of which has times of its own."""
        request = self.check(drafts, now_ms=now_ms)
        for place, job in enumerate(request, 1):
            try:
                self.check_text(job.effect, job.text)
            except InvalidInput as error:
                raise type(error)(f"record {place} (id {job.id!r}): {error}") from error
        if now_ms is None and _any_relative(drafts):
            request = self._request(drafts, self.ledger.now_ms())
        return self._store(request, connection, now_ms)

    def check(self, drafts: Iterable[Draft], *, now_ms: int | None = None) -> Request:
        """Check the jobs against every rule but their effects', without a look at the ledger."""
        return self._request(drafts, wall_ms() if now_ms is None else now_ms)

    def check_text(self, effect: str, text: str) -> None:
        """Ask the effect whether it could ever apply the text; where it is not installed here, nobody is asked.

        Raises:
            InvalidInput: the effect refuses the text.
            PluginError: its check is itself at fault.
        """
        if effect not in self._checks:
            with self._lock:
                if (
                    effect not in self._checks
                ):  # another thread may have been faster; each effect is asked for once
                    self._checks[effect] = self._effects.text_check(effect)
        self._checks[effect](text)

    def store(
        self, drafts: Iterable[Draft], *, connection: Any = None, now_ms: int | None = None
    ) -> list[Enqueued]:
        """Store jobs whose texts were checked, and tell the observers of them."""
        drafts = list(drafts)
        # What is relative counts from the ledger's clock, which for PostgreSQL is not this machine's.
        at_ms = self.ledger.now_ms() if now_ms is None and _any_relative(drafts) else now_ms or 0
        return self._store(self._request(drafts, at_ms), connection, now_ms)

    def _store(self, request: Request, connection: Any, now_ms: int | None) -> list[Enqueued]:
        answers = self.ledger.enqueue(request, connection=connection, now_ms=now_ms)
        for job, answer in zip(request, answers, strict=True):
            self._effects.plugins.observers.job_enqueued(job, answer.created)
        return answers

    def _request(self, drafts: Iterable[Draft], now_ms: int) -> Request:
        return check_request(
            [
                job
                if (defaults := self._config.queues.get(job.queue)) is None
                else replace(job, stamps=policy.with_defaults(job.stamps, defaults))
                for job in jobs_at(drafts, now_ms)
            ]
        )


def _any_relative(drafts: Iterable[Draft]) -> bool:
    return any(draft.is_relative for draft in drafts)


def open_producer(
    store: str | None = None, *, config: str | None = None, plugins: Sequence[str] = ()
) -> Producer:
    """Open what a program needs to enqueue: once for each process. A context manager.

    Args:
        store: as ``open_ledger`` takes it; the configuration's unless given.
        config: the configuration file; else that of ``FENCEPOST_CONFIG``, else ``fencepost.toml`` in the working
            folder, if it is there.
        plugins: modules or files to load as plugins, beside those that are installed.

    Raises:
        InvalidInput: the configuration or the store's name is wrong.
        LedgerError: the store is there but cannot be used.
        PluginError: one of ``plugins`` cannot be loaded.
    """
    configured = load(config)
    name = store_name(store, configured)
    effects = Effects(configured, warn=_log.warning, modules=plugins)
    producer = Producer(name, configured, effects)
    producer._while_open.callback(effects.plugins.close)
    _ = producer.ledger  # whatever is wrong with the store shows now, and not at the first job
    return producer
