"""``fencepost receiver``: run the receiver of remote effects, or check somebody's own."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated, Final, Optional

import typer

from ..errors import FencepostError, InvalidInput, PluginError
from .ui import options
from .ui.output import print_document, wants_json, warn

if TYPE_CHECKING:
    from ...effects.receiver.check import Row
    from ...effects.receiver.server import Server

TOKEN_ENV: Final = "FENCEPOST_RECEIVER_TOKEN"
DEFAULT_PORT: Final = 8470
DEFAULT_TIMEOUT_S: Final = 30.0

app = typer.Typer(
    name="receiver",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
)


@app.callback()
def receiver(
    context: typer.Context,
    db: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option(
            metavar="FILE", help="The SQLite file with the inbox and the keys; made if it is absent."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="0 takes a free one.")
    ] = DEFAULT_PORT,
    base: Annotated[str, typer.Option(metavar="PATH", help="The path that senders are given.")] = "/",
    keep_keys_days: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            min=1, max=36_500, metavar="DAYS", help="Forget keys after this many days. [default: keep them]"
        ),
    ] = None,
    max_body_bytes: Annotated[int, typer.Option(metavar="N", min=1, help="Refuse larger bodies.")] = 1024
    * 1024,
) -> None:
    """Run a receiver that puts each delivery into a table, once; or check yours with `fencepost receiver check URL`.

    Prints its URL when it listens, then serves until SIGTERM or SIGINT. If FENCEPOST_RECEIVER_TOKEN is set, every
    request must carry it as a bearer token.

    Example: fencepost receiver --db receiver.db
    """
    if context.invoked_subcommand is not None:
        return
    # Each command of this group needs another half of the receiver's code, and http.server is slow to load.
    import sqlite3

    from ...effects.receiver import Receiver
    from ...effects.receiver.inbox import Inbox
    from ...effects.receiver.server import Server

    if db is None:
        raise InvalidInput("name the file to keep deliveries in: fencepost receiver --db receiver.db")
    if not base.startswith("/"):
        raise InvalidInput(f"--base {base!r} must be a path, such as /orders")
    token = os.environ.get(TOKEN_ENV) or None
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s")
    try:
        inbox = Inbox(db)
        service = Receiver(
            inbox.connect,
            inbox.add,
            base=base,
            token=token,
            keys_kept_s=None if keep_keys_days is None else keep_keys_days * 86_400,
            max_body_bytes=max_body_bytes,
        )
        server = Server(service, host=host, port=port)
    except sqlite3.Error as error:
        raise FencepostError(f"{db}: {error}") from error
    except OSError as error:
        raise FencepostError(
            f"{host} port {port} cannot be listened on: {error.strerror or error}"
        ) from error
    if token is None and not server.is_loopback:
        warn(f"everybody who reaches {server.url} may deliver: set {TOKEN_ENV}, and put TLS in front")
    _stop_on_signals(server)
    print_document({"url": server.url + base.rstrip("/"), "db": os.path.abspath(db)})
    with server:
        server.serve_forever()


@app.command()
def check(
    url: Annotated[str, typer.Argument(metavar="URL", help="The receiver's base: the remote effect's url.")],
    method: Annotated[str, typer.Option(help="How deliveries are sent.")] = "POST",
    body: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="TEXT", help="The body of deliveries, where the receiver wants a special one."),
    ] = None,
    content_type: Annotated[
        str, typer.Option(metavar="TYPE", help="The content type of the body.")
    ] = "text/plain; charset=utf-8",
    timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            metavar="SPAN", parser=options.span_s, help="How long an answer may take. [default: 30s]"
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check that a receiver keeps the contract (docs/reference/receiver.md). Use one for tests: it gets real work.

    Exit 1 if a row is not kept, with the table of all rows. FENCEPOST_REMOTE_TOKEN is sent as a bearer token.

    Example: fencepost receiver check http://127.0.0.1:8470
    """
    from ...effects.receiver.check import DEFAULT_BODY, Check  # needed by this command alone

    try:
        import httpx
    except ImportError as error:
        raise PluginError("the check needs httpx: pip install 'fencepost[http]'") from error
    headers = {"content-type": content_type}
    if token := os.environ.get("FENCEPOST_REMOTE_TOKEN"):
        headers["authorization"] = f"Bearer {token}"
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} must begin with https:// or http://")
    if timeout == 0:
        raise InvalidInput("--timeout must be more than 0")
    with httpx.Client(headers=headers, timeout=DEFAULT_TIMEOUT_S if timeout is None else timeout) as client:
        content = DEFAULT_BODY if body is None else body.encode("utf-8")
        rows = list(Check(client, url, method=method, body=content).rows())
    failed = [row for row in rows if not row.ok]
    if failed:
        raise FencepostError(f"{url} does not keep {len(failed)} of {len(rows)} rows:\n\n{_table(rows)}")
    if wants_json(as_json):
        print_document({"schema_version": 1, "url": url, "rows": [_document(row) for row in rows]})
    else:
        sys.stdout.write(_table(rows))


def _stop_on_signals(server: Server) -> None:
    def stop(number: int, frame: object) -> None:
        # In a thread: shutdown() waits for the loop of the server, which this handler interrupts.
        threading.Thread(target=server.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _table(rows: list[Row]) -> str:
    width = max(len(row.name) for row in rows)
    lines = []
    for row in rows:
        lines.append(f"{'ok  ' if row.ok else 'FAIL'}  {row.name:<{width}}  {row.expects}")
        if row.failure is not None:
            lines.append(f"{'':<{width + 6}}  but: {row.failure}")
    return "\n".join(lines) + "\n"


def _document(row: Row) -> dict[str, object]:
    return {"name": row.name, "expects": row.expects, "ok": row.ok}
