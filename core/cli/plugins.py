"""``fencepost plugins``: what is installed, whether it works, and whether an effect keeps its promise."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

app = typer.Typer(
    name="plugins",
    help="Show the plugins that are installed, and examine them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)

ModuleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", metavar="MODULE", help="Also load this module, file or shipped plugin; repeatable."
    ),
]
BlockOption = Annotated[
    list[str] | None,
    typer.Option("--no-plugin", metavar="NAME", help="Do not load this plugin or distribution; repeatable."),
]


@app.callback()
def show(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    all_plugins: Annotated[bool, typer.Option("--all", help="Also those that ship with fencepost.")] = False,
    plugin: ModuleOption = None,
    no_plugin: BlockOption = None,
) -> None:
    """Show the plugins that are installed, and examine them."""
    if context.invoked_subcommand is not None:
        return
    from ...plugins import API_VERSION, listing
    from ...plugins.manager import Plugins
    from ..documents import readable

    plugins = Plugins.load(blocked=no_plugin or (), modules=plugin or (), tolerant=True)
    rows = listing.rows(plugins, all=all_plugins)
    if as_json:
        document = {"schema_version": 1, "api_version": API_VERSION, "plugins": rows}
        sys.stdout.write(readable(document).decode("utf-8"))
    else:
        sys.stdout.write(listing.table(rows))


@app.command()
def doctor(plugin: ModuleOption = None, no_plugin: BlockOption = None) -> None:
    """Exit 1 if a plugin is broken, and say what to do about each that is."""
    from ...plugins import listing
    from ...plugins.manager import Plugins
    from ..errors import PluginError

    plugins = Plugins.load(blocked=no_plugin or (), modules=plugin or (), tolerant=True)
    rows = listing.rows(plugins, all=True)
    broken = [row for row in rows if row["state"] == "broken"]
    if broken:
        raise PluginError(
            f"{len(broken)} of {len(rows)} plugins cannot be used:\n"
            + "\n".join(f"  {listing.called(row)}: {row['reason']}" for row in broken)
            + "\nRepair, upgrade or uninstall them, or block them with --no-plugin NAME."
        )
    sys.stdout.write(f"all {len(rows)} plugins can be used\n")
