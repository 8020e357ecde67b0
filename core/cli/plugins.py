"""``fencepost plugins``: list what is installed, find what is broken, and check the promise of an effect."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ...plugins import API_VERSION, listing, settings
from ...plugins.manager import Plugins
from ..config import Config, load
from ..errors import InvalidInput, PluginError
from .ui import complete, options
from .ui.output import documents_only, print_document, wants_json

if TYPE_CHECKING:
    from ...plugins.testing import Result

app = typer.Typer(
    name="plugins",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)


@app.callback()
def show(
    context: typer.Context,
    as_json: options.Json = False,
    all_plugins: Annotated[
        bool, typer.Option("--all", help="Also show those that ship with fencepost.")
    ] = False,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
) -> None:
    """Show the plugins that are installed: effect, version, distribution, delivery, state and hooks.

    Example: fencepost plugins --all
    """
    if context.invoked_subcommand is not None:
        return
    with documents_only():
        plugins = Plugins.load(blocked=no_plugin or (), modules=plugin or (), tolerant=True)
    rows = listing.rows(plugins, all=all_plugins)
    if wants_json(as_json):
        print_document({"schema_version": 1, "api_version": API_VERSION, "plugins": rows})
    else:
        sys.stdout.write(listing.table(rows))


@app.command()
def doctor(
    as_json: options.Json = False,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    no_plugin: options.NoPlugin = None,
    config: options.Config = None,
) -> None:
    """Exit 1 if a plugin is broken, or its effect lacks settings, and say what to do about each.

    An effect that ships with Fencepost may lack settings, unless some are given.

    Example: fencepost plugins doctor
    """
    configured = load(config)
    given = _settings(configured, set_, effect=None)
    with documents_only():
        plugins = Plugins.load(blocked=no_plugin or (), modules=plugin or (), tolerant=True)
    rows = listing.rows(plugins, all=True)
    faults = [
        (row, row["reason"] if row["state"] == "broken" else _lack(plugins, row["effect"], given))
        for row in rows
    ]
    broken = [(row, reason) for row, reason in faults if reason is not None]
    if broken:
        raise PluginError(
            f"{len(broken)} of {len(rows)} plugins cannot be used:\n"
            + "\n".join(f"  {listing.called(row)}: {reason}" for row, reason in broken)
            + "\nRepair, set up, upgrade or uninstall them, or block them with --no-plugin NAME."
        )
    if wants_json(as_json):
        print_document({"schema_version": 1, "plugins": len(rows), "broken": []})
    else:
        sys.stdout.write(f"none of {len(rows)} plugins is broken\n")


@app.command()
def check(
    effect: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=complete.effects, help="The effect.")
    ],
    observed: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option(
            metavar="COMMAND",
            help="A command that prints how often the outside world saw the effect. Acting effects need it.",
        ),
    ] = None,
    text: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--text", metavar="TEXT", help="The text of the jobs."),
    ] = None,
    point: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Only this row of the matrix. Repeatable."),
    ] = None,
    as_json: options.Json = False,
    set_: options.Set = None,
    plugin: options.Plugin = None,
    config: options.Config = None,
) -> None:
    """Kill workers at every point of an attempt, and see whether the effect keeps the promise of its delivery.

    It really applies the effect, once for each row of the matrix: point its settings at something that may be
    written to. Exit 1 if the promise is not kept, with a remedy for each row.

    Example: fencepost plugins check letter --set folder=/tmp/out --observed "python count.py /tmp/out"
    """
    # The crash kit is slow to load, and only this command needs it.
    import tempfile

    from ...plugins.testing import EffectCase, report
    from ...plugins.testing.case import DEFAULT_TEXT

    given = _settings(load(config), set_, effect=effect)
    with documents_only(), tempfile.TemporaryDirectory(prefix="fencepost-check-") as folder:
        try:
            case = EffectCase(
                effect,
                Path(folder),
                observed=None if observed is None else _counter(observed),
                text=DEFAULT_TEXT if text is None else text,
                settings=given.get(effect, {}),
                middleware={name: values for name, values in given.items() if name != effect},
                plugins=plugin or (),
            )
            results: list[Result] = case.results(*(point or ()))
        except ValueError as error:
            raise InvalidInput(str(error)) from error
        except TypeError as error:
            raise InvalidInput(f"{error}: --observed COMMAND prints that number") from error
    failed = sum(not result.ok for result in results)
    if failed:
        raise PluginError(
            f"the effect {effect!r} (delivery {case.info.delivery!r}) does not keep its promise at {failed} of "
            f"{len(results)} points\n\n{report.table(results)}\n{report.failures(results)}"
        )
    if wants_json(as_json):
        head = {"schema_version": 1, "effect": effect, "delivery": case.info.delivery}
        print_document(head | {"rows": report.documents(results)})
    else:
        sys.stdout.write(report.table(results))


def _settings(
    configured: Config, set_: Sequence[str] | None, *, effect: str | None
) -> dict[str, dict[str, settings.Given]]:
    return settings.merged(
        settings.from_table(configured.effects, origin=str(configured.path or "")),
        settings.from_options(set_ or (), effect=effect),
    )


def _lack(plugins: Plugins, effect: str | None, given: Mapping[str, settings.Settings]) -> str | None:
    """Say which settings the effect lacks; one that ships may lack them unless somebody wants to use it."""
    if effect is None or (plugins.ships(effect) and effect not in given):
        return None
    return plugins.lacks_settings(effect, given.get(effect))


def _counter(command: str) -> Callable[[], int]:
    """Make the function that runs the command and reads the number that it prints."""
    arguments = shlex.split(command)

    def count() -> int:
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
            return int(done.stdout)
        except subprocess.CalledProcessError as error:
            reason = f"it ended with status {error.returncode}: {error.stderr.strip()[-500:]}"
        except ValueError:
            reason = f"it printed {done.stdout.strip()[:100]!r}, which is no whole number"
        except OSError as error:
            reason = f"it cannot be run: {error.strerror}"
        raise InvalidInput(f"--observed {command}: {reason}")

    return count
