"""A ledger with one job of the effect ``remote``, its workers and its receivers: each a real process."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fencepost.core import (
    Job,
    NewJob,
    Receipt,
    open_ledger,
)

from tests.effects.proxy import Proxy
from tests.programs import FENCEPOST

LEASE_MS = 60_000
TEXT = "hello, receiver"
ID = "job-1"
REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = {"NO_PROXY": "*", "no_proxy": "*", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)}


class Process:
    """A process whose lines can be waited for; what it says on stderr is kept in a file."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``close``
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=REPOSITORY,
            env=ENVIRONMENT | environment,
        )

    def line(self) -> str:
        """The next line that it prints; empty at its end."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()

    def go_on(self) -> None:
        """Give it the line that it waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def end(self) -> tuple[int, str, str]:
        """Wait for its end: exit status, stdout, stderr."""
        out, _ = self._process.communicate(timeout=120)
        self._errors.seek(0)
        return self._process.returncode, out.decode(), self._errors.read().decode()

    def close(self) -> None:
        """Whatever it is doing."""
        self.kill()
        self._process.communicate()
        self._errors.close()


class World:
    """A ledger with one job, a receiver's database, and what runs over them. Clocks are logical."""

    def __init__(self, folder: Path, *, ledger: str = "jobs.db") -> None:
        self.folder = folder
        self.db = folder / "receiver.db"
        self.store = str(folder / ledger)
        self.processes: list[Process] = []
        self._proxies: list[Proxy] = []
        self.port = 0
        self.enqueue(self.store)

    def enqueue(self, store: str) -> None:
        """The job."""
        with open_ledger(store) as ledger:
            ledger.enqueue([NewJob(ID, TEXT, effect="remote")], now_ms=0)

    # -- processes --

    def start(self, *command: str, **environment: str) -> Process:
        """A process that is ended with the world."""
        self.processes.append(Process(command, **environment))
        return self.processes[-1]

    def receiver(self, *options: str, **environment: str) -> str:
        """The receiver that ships; its URL. One that is started after another has the same port."""
        where = ("--db", str(self.db), "--port", str(self.port))
        process = self.start(*FENCEPOST, "receiver", *where, *options, **environment)
        lines = []
        while (line := process.line()) != "}\n":
            assert line, process.end()
            lines.append(line)
        return self._listens(json.loads("".join([*lines, "}"]))["url"])

    def odd_receiver(self, how: str) -> tuple[str, Process]:
        """One whose work waits or dies; its URL and its process."""
        process = self.start(
            sys.executable, "-m", "tests.effects.odd_receiver", str(self.db), str(self.port), how
        )
        url = process.line().strip()
        assert url, process.end()
        return self._listens(url), process

    def _listens(self, url: str) -> str:
        port = urlsplit(url).port
        assert port
        self.port = port
        return url

    def proxy(self, upstream: str) -> Proxy:
        """A proxy in front of a receiver."""
        self._proxies.append(Proxy(upstream))
        return self._proxies[-1]

    def worker(self, url: str, *, now_ms: int = 0, store: str | None = None, **environment: str) -> Process:
        """A worker that makes one attempt, if there is one to make."""
        return self.start(
            *FENCEPOST,
            *("worker", "--store", store or self.store, "--effect", "remote"),
            *("--set", f"url={url}", "--set", "namespace=test", "--set", "timeout_s=60"),
            *("--now-ms", str(now_ms), "--lease-ms", str(LEASE_MS), "--max-attempts", "9"),
            **environment,
        )  # fmt: skip

    def attempt(self, url: str, *, now_ms: int = 0, **environment: str) -> dict[str, Any]:
        """The event of one attempt that is made to its end."""
        status, out, said = self.worker(url, now_ms=now_ms, **environment).end()
        assert status == 0, said
        [event] = json.loads(out)["events"]
        return event

    def close(self) -> None:
        """End everything."""
        for process in self.processes:
            process.close()
        for proxy in self._proxies:
            proxy.stop()

    # -- what became of it --

    def done(self) -> int:
        """How often the work was done, counted in the receiver's own database."""
        with closing(sqlite3.connect(self.db)) as connection:
            return int(connection.execute("SELECT count(*) FROM inbox").fetchone()[0])

    def fence_seen(self) -> int:
        """The highest fence that the receiver remembers."""
        with closing(sqlite3.connect(self.db)) as connection:
            return int(connection.execute("SELECT max(fence) FROM fencepost_received").fetchone()[0])

    def job(self) -> Job:
        """As it stands in the ledger."""
        with open_ledger(self.store) as ledger:
            job = ledger.get_job(ID)
        assert job is not None
        return job

    def receipt(self) -> Receipt | None:
        """As it stands in the ledger."""
        with open_ledger(self.store) as ledger:
            return ledger.receipts([ID]).get(ID)
