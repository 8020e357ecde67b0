"""``fencepost migrate``: bring the schema of a PostgreSQL ledger up to date, or print the SQL that would."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import Unsupported
from ..ledgers.open import parse_store
from ..ledgers.postgres.upgrade import upgrade, upgrade_script
from ..stores import store_name
from .ui import options
from .ui.output import print_document


def migrate(
    store: options.Store = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the SQL, for a person who may change the schema.")
    ] = False,
    config: options.Config = None,
) -> None:
    """Bring the schema of a PostgreSQL ledger up to date; make it where it is absent.

    Running programs go on meanwhile. A ledger in a folder or in SQLite is brought up to date when it is opened.

    Example: fencepost migrate --store postgresql://db/jobs --dry-run
    """
    name = store_name(store, config)
    kind, url = parse_store(name)
    if kind != "postgres":
        raise Unsupported(
            f"{name}: only a PostgreSQL ledger is migrated by hand; this one is brought up to date when it is opened"
        )

    if dry_run:
        print(upgrade_script(url), end="")
        return
    done = upgrade(url)
    print_document({"schema_version": 1, "store": done.location, "from": done.before, "to": done.after})
