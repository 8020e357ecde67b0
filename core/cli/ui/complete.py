"""Completion of names in a shell: effects, queues, schedules and plugins, as they are in the store at hand.

A person waits for it at each press of the tab key, so it reads a page of jobs at most, imports no plugin, and asks no
database server. It never fails: where nothing can be read, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

import typer

from ...config import load
from ...errors import FencepostError
from ...model.job import DEFAULT_QUEUE, Job
from ...model.query import JobQuery

if TYPE_CHECKING:
    from ...ledgers.protocol import Ledger

Found = TypeVar("Found")
PAGE: Final = 200
"""How many jobs are read for the names in them."""


def effects(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the effects that are installed, configured, or named by a job."""
    from ....plugins import discovery  # pluggy is slow to load

    names = set(discovery.BUILTINS) | {found.name for found in discovery.entry_points()}
    names |= set(_configured(ctx, lambda config: load(config).effects))
    return _fitting(names | {job.effect for job in _jobs(ctx)}, incomplete)


def queues(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the queues that are configured, paused, or named by a job."""
    names = {DEFAULT_QUEUE, *_configured(ctx, lambda config: load(config).queues)}
    names |= set(_read(ctx, lambda ledger: ledger.paused() if ledger.capabilities.has_schedules else []))
    return _fitting(names | {job.queue for job in _jobs(ctx)}, incomplete)


def schedules(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the schedules of the ledger."""
    found = _read(ctx, lambda ledger: ledger.schedules() if ledger.capabilities.has_schedules else [])
    return _fitting((one.name for one in found), incomplete)


def plugins(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the plugins that ``--no-plugin`` can block."""
    from ....plugins import discovery  # pluggy is slow to load

    names = {found.name for found in discovery.entry_points()}
    return _fitting({*names, *discovery.BUILTINS, discovery.ALL}, incomplete)


def plugin_files(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the plugins that ``--plugin`` can name: those that ship, and the Python files of the working folder."""
    from ....plugins import discovery  # pluggy is slow to load

    files = (name for name in os.listdir() if name.endswith(".py"))
    return _fitting({*discovery.OPTIONAL, *files}, incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _configured(ctx: typer.Context, names: Callable[[str | None], Iterable[str]]) -> list[str]:
    try:
        return list(names(ctx.params.get("config")))
    except FencepostError:
        return []


def _jobs(ctx: typer.Context) -> list[Job]:
    return _read(ctx, lambda ledger: ledger.jobs(JobQuery(limit=PAGE)).jobs)


def _read(ctx: typer.Context, look: Callable[[Ledger], list[Found]]) -> list[Found]:
    # Every command imports this module, and most runs complete nothing.
    from ...ledgers.open import ledger_exists, open_ledger, parse_store
    from ...stores import store_name

    try:
        store = store_name(ctx.params.get("store"), ctx.params.get("config"))
        if parse_store(store)[0] == "postgres" or not ledger_exists(store):
            return []
        with open_ledger(store) as ledger:
            return look(ledger)
    except FencepostError:
        return []
