"""Options that several commands share, and their help."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from ...errors import InvalidInput
from ...model.durations import parse_span
from . import complete


def span_ms(text: str) -> int:
    """Parse the value of an option that is a span, in milliseconds."""
    try:
        return parse_span(text)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error


def span_s(text: str) -> float:
    """Parse the value of an option that is a span, in seconds."""
    return span_ms(text) / 1_000


Store = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option(
        "--store",
        metavar="STORE",
        help="A folder; a SQLite file (sqlite:PATH, or a name that ends in .db or .sqlite); or postgresql://…  "
        "[default: that of fencepost.toml, else jobs-data]",
    ),
]
Config = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration. [default: $FENCEPOST_CONFIG, else ./fencepost.toml if it is there]",
    ),
]
NowMs = Annotated[
    int,
    typer.Option(
        "--now-ms",
        metavar="MS",
        min=-1,
        max=2**53 - 1,
        help="A fixed logical clock, in ms; -1 is the ledger's own clock. Never mix the two in one store.",
    ),
]
Set = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A setting of the effect, or EFFECT.KEY=VALUE. Repeatable."
    ),
]
Plugin = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--plugin",
        metavar="MODULE",
        autocompletion=complete.plugin_files,
        help="Also load this module or .py file as a plugin. Repeatable.",
    ),
]
NoPlugin = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--no-plugin",
        metavar="NAME",
        autocompletion=complete.plugins,
        help="Do not load this plugin or distribution. Repeatable.",
    ),
]
VisibilityTimeout = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(metavar="SPAN", parser=span_s, help="Stamp: the lease of each claim."),
]
MaxAttempts = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(metavar="N", help="Stamp: the limit of attempts, whatever a worker's is."),
]
BackoffBase = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        metavar="SPAN",
        parser=span_s,
        help="Stamp: the backoff after the first failure; it doubles each time.",
    ),
]
DeadLetterRetention = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(metavar="SPAN", parser=span_s, help="Stamp: how long the job is kept once it is dead."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON. Default when stdout is not a terminal.")]
Actor = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="WHO", help="Who does this; the audit keeps it. [default: user@host]"),
]
Reason = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="WHY", help="Why; the audit keeps it."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")]


def logical_or_none(now_ms: int) -> int | None:
    """Return the value of ``--now-ms`` as the verbs take it."""
    return None if now_ms < 0 else now_ms
