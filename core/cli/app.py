"""The commands of ``fencepost``. Each imports what it needs when it runs, so that ``--help`` stays quick."""

from __future__ import annotations

from typing import Annotated

import typer

from . import demo, enqueue, plugins, status, worker

app = typer.Typer(
    name="fencepost",
    help="Background work with side effects, applied once: durable jobs, leases with fences, receipts.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"fencepost {version('fencepost')}")
        raise typer.Exit


@app.callback()
def fencepost(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks of errors. May stand anywhere in the command.")
    ] = False,
) -> None:
    """Background work with side effects, applied once: durable jobs, leases with fences, receipts."""


app.command("enqueue")(enqueue.enqueue)
app.command("worker")(worker.worker)
app.command("status")(status.status)
app.command("demo")(demo.demo)
app.add_typer(plugins.app, name="plugins")
