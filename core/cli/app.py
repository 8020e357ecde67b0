"""The commands of ``fencepost``, and the options of the program itself.

A command is imported when it is used (``lazy.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from .lazy import Lazy, LazyGroup


class Commands(LazyGroup):
    """The table of the commands."""

    table: ClassVar[Mapping[str, Lazy]] = {
        "enqueue": Lazy(
            "enqueue.command", "enqueue", "Store jobs, durably; the same records again change nothing."
        ),
        "worker": Lazy(
            "worker.command", "worker", "Work on jobs: claim, apply the effect, store the receipt, complete."
        ),
        "status": Lazy("status", "status", "Show the jobs and the receipts of a store, as one document."),
        "demo": Lazy("demo", "demo", "Show a crash and its recovery, on a store of its own."),
        "jobs": Lazy(
            "jobs.commands", "app", "Find jobs, see why one has not run, cancel jobs, decide held ones."
        ),
        "dead": Lazy("jobs.dead", "app", "List dead jobs, queue them again, or purge them."),
        "top": Lazy("top.command", "top", "Watch a ledger live."),
        "queues": Lazy("queues", "app", "Show the queues; pause one, resume it."),
        "schedule": Lazy(
            "schedule.commands", "app", "Enqueue a job again and again, by a span or by the calendar."
        ),
        "sweep": Lazy("sweep", "sweep", "Bury expired jobs, and purge dead ones whose retention has ended."),
        "audit": Lazy("audit", "audit", "List the manual actions on a ledger: who, when, why."),
        "doctor": Lazy("doctor", "doctor", "Check a ledger, and name a remedy for each finding."),
        "copy": Lazy("copy", "copy", "Move a whole ledger to another one, of any kind."),
        "migrate": Lazy("migrate", "migrate", "Bring the schema of a PostgreSQL ledger up to date."),
        "plugins": Lazy("plugins", "app", "Show the plugins that are installed, and examine them."),
        "receiver": Lazy(
            "receiver", "app", "The receiver's half of remote effects: run one, or check yours."
        ),
    }


app = typer.Typer(
    name="fencepost",
    cls=Commands,
    help="Background work with side effects, applied once: durable jobs, leases with fences, receipts.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # slow to load, and only this option needs it

        print(f"fencepost {version('fencepost')}")
        raise typer.Exit


@app.callback()
def fencepost(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors. Can be given anywhere in the command.")
    ] = False,
) -> None:
    """Background work with side effects, applied once: durable jobs, leases with fences, receipts."""
