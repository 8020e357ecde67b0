"""Runs the documentation: every fenced block of a page, in order, in an empty folder and one shell.

    ```console       commands after ``$ `` (continued after ``> ``); what stands below one is its output, which is
                     compared, but for line breaks. ``...`` stands for any text; where none is given, none is compared
    ```python        run as a script
    ```text          nothing: output, a picture, a sketch
    ```{name}        nothing: a directive of the site, which `make docs` builds

A comment before a block says otherwise::

    <!-- file: NAME -->        the block is written to the file; any language
    <!-- exits 1 -->           the last command of the block must end with that status
    <!-- not run: REASON -->   it cannot be run here
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TIMEOUT_S: Final = 120.0
NOT_CODE: Final = frozenset({"text", "mermaid"})

_FENCE = re.compile(r"^( *)(```+)([\w{}-]*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--\s*(?:(file|not run):\s*((?:(?!-->).)+?)|exits (\d+))\s*-->\s*\Z", re.DOTALL)


class PageError(AssertionError):
    """The page says something that is not so; the message names file and line."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    line: int
    language: str
    text: str
    file: str | None = None
    not_run: str | None = None
    status: int = 0


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, each with what the comment before it says."""
    for fence in _FENCE.finditer(page):
        said = _COMMENT.search(page, 0, fence.start())
        kind, value, status = said.groups() if said else (None, None, None)
        indent = fence[1]
        yield Block(
            line=page.count("\n", 0, fence.start()) + 1,
            language=fence[3],
            text="".join(line.removeprefix(indent) for line in fence[4].splitlines(keepends=True)),
            file=value if kind == "file" else None,
            not_run=value if kind == "not run" else None,
            status=int(status or 0),
        )


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that it is said to have."""
    command: list[str] = []
    output: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(output)
            command, output = [line[2:]], []
        elif line.startswith("> ") and command and not output:
            command.append(line[2:])
        elif command:
            output.append(line)
        else:
            raise PageError(f"a console block begins with {line!r}; commands stand after '$ '")
    if command:
        yield "\n".join(command), "\n".join(output)


def matches(expected: str, got: str) -> bool:
    """Whether the output is as the page says, where ``...`` is any text; pages may wrap lines."""
    pattern = ".*".join(re.escape(part) for part in " ".join(expected.split()).split("..."))
    return re.fullmatch(pattern, " ".join(got.split())) is not None


class Shell:
    """One bash for a page: folder, variables and background processes last from block to block."""

    _SENTINEL = "--end-of-command--"

    def __init__(self, folder: Path, bin: Path, env: Mapping[str, str]) -> None:
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTEST", "FENCEPOST", "COV"))
        }
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=clean
            | env
            | {
                "PATH": os.pathsep.join([str(bin), env.get("PATH", os.environ["PATH"])]),
                "HOME": str(folder),
            },
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """One command: its status, and all that it said."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        # The end is told on a line of its own, and the command reads nothing of what follows it.
        stdin.write(f"{{ {command}\n}} </dev/null; ended=$?; echo; echo {self._SENTINEL} $ended\n".encode())
        stdin.flush()
        said = b""
        deadline = time.monotonic() + TIMEOUT_S
        end = re.compile(rf"\n{self._SENTINEL} (\d+)\n\Z".encode())
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while (found := end.search(said)) is None:
                if not selector.select(deadline - time.monotonic()):
                    raise PageError(
                        f"`{command}` did not end within {TIMEOUT_S:g} s: {said.decode()[-2000:]}"
                    )
                more = os.read(stdout.fileno(), 65_536)
                if not more:
                    raise PageError(f"`{command}` ended the shell: {said.decode()[-2000:]}")
                said += more
        return int(found[1]), said[: found.start()].decode()

    def close(self) -> None:
        """End the shell and all that it left running."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def run_page(
    path: Path, folder: Path, *, bin: Path | None = None, env: Mapping[str, str] | None = None
) -> int:
    """Run a page in ``folder`` with the commands in ``bin`` and the variables of ``env``; how many blocks were run.

    Raises:
        PageError: a block does not do what the page says, or is none that can be run.
    """
    shell = Shell(folder, bin or Path(sys.executable).parent, env or {})
    done = 0
    try:
        for block in blocks(path.read_text("utf-8")):
            if block.not_run is not None or (block.file is None and not _is_code(block.language)):
                continue
            try:
                _run_block(block, shell, folder)
            except PageError as error:
                raise PageError(f"{path}:{block.line}: {error}") from None
            done += 1
    finally:
        shell.close()
    return done


def _is_code(language: str) -> bool:
    return language not in NOT_CODE and not language.startswith("{")


def _run_block(block: Block, shell: Shell, folder: Path) -> None:
    if block.file is not None:
        target = folder / block.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, "utf-8")
        return
    if block.language == "python":
        script = folder / ".block.py"
        script.write_text(block.text, "utf-8")
        steps = [(f"python {script}", "")]
    elif block.language == "console":
        steps = list(commands(block.text))
    else:
        raise PageError(
            f"a block in {block.language or 'no language'} is neither run nor explained: write it as console, python "
            "or text, or put <!-- file: NAME --> or <!-- not run: REASON --> before it"
        )
    for place, (command, expected) in enumerate(steps, 1):
        status, said = shell.run(command)
        wanted = block.status if place == len(steps) else 0
        if status != wanted:
            raise PageError(f"`{command}` ended with status {status}, not {wanted}: {said[-2000:]}")
        if expected.strip() and not matches(expected, said):
            raise PageError(f"`{command}` said\n{said}\nand not\n{expected}")
