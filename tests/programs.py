"""Running Fencepost as people do: real processes, real exit statuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FENCEPOST = (sys.executable, "-m", "fencepost.core.cli")
"""The command, as the interpreter that runs the tests has it."""


def fencepost(
    *arguments: str | Path,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one command to its end."""
    return subprocess.run(
        [*FENCEPOST, *map(str, arguments)],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd=cwd,
        env=None if env is None else {**os.environ, **env},
        timeout=120,
    )


def document(*arguments: str | Path, stdin: bytes | None = None, cwd: Path | None = None) -> Any:
    """The one document that a command prints; it must succeed without a word on stderr."""
    ended = fencepost(*arguments, stdin=stdin, cwd=cwd)
    assert (ended.returncode, ended.stderr) == (0, b"")
    return json.loads(ended.stdout)


def refused(*arguments: str | Path, stdin: bytes | None = None, cwd: Path | None = None) -> str:
    """What a command says that must fail: exit 1, nothing on stdout, no traceback."""
    ended = fencepost(*arguments, stdin=stdin, cwd=cwd)
    said = ended.stderr.decode()
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert said.strip()
    assert "Traceback" not in said
    return said


def python(source: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", source, *map(str, arguments)], capture_output=True, check=False, timeout=120
    )


def python_all(
    source: str, argument_lists: Sequence[Sequence[str | Path]]
) -> list[subprocess.CompletedProcess[bytes]]:
    """Run a script in several processes at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", source, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for arguments in argument_lists
    ]
    ended = []
    for process in started:
        out, err = process.communicate(timeout=180)
        ended.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    return ended


def catches_sigterm(process: subprocess.Popen[bytes]) -> bool:
    """Whether it would notice a SIGTERM; one that was only just started dies of it."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False
