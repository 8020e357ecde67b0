"""What it costs to start: `fencepost --help` and `fencepost status` beside a bare Typer app, in turns.

    python -m tests.bench.bench_startup

Both are measured compiled, as installed programs are, whatever this environment says of .pyc files: the compiled
code goes to a folder of its own. The processor's time decides, at its least of all runs: it hardly depends on what
else the machine does. The time that a person waits stands beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.harness import Line, compiled

RUNS = 30
BARS = {"--help": 1.6, "status": 1.8}

BARE = """
import typer
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)

@app.command()
def one(number: int = typer.Option(3, min=1, help="A number.")) -> None:
    print(number)

@app.command()
def two() -> None:
    pass

app()
"""
FENCEPOST = "from fencepost.core.cli import main; main()"


def took_s(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Seconds of the processor, and seconds from start to end, of one run of a command."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
    _, ended, usage = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(ended)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime, elapsed_s


def measure(folder: Path) -> dict[str, list[tuple[float, float]]]:
    """Every command so often, one after the other in turns."""
    bare, ours, store = folder / "bare.py", folder / "ours.py", str(folder / "store")
    bare.write_text(BARE)
    ours.write_text(FENCEPOST)
    records = folder / "in.json"
    records.write_text(json.dumps([{"id": f"j{n}", "text": "x"} for n in range(10)]))
    env = compiled(folder / "compiled")
    took_s([sys.executable, str(ours), "enqueue", "--store", store, "--input", str(records)], env)
    commands = {
        "bare --help": [sys.executable, str(bare), "--help"],
        "bare command": [sys.executable, str(bare), "one"],
        "--help": [sys.executable, str(ours), "--help"],
        "status": [sys.executable, str(ours), "status", "--store", store],
    }
    for command in commands.values():
        took_s(command, env)  # compiles what it imports
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            found[name].append(took_s(command, env))
    return found


def main() -> None:
    """Measure, each beside its bare twin."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    least_s = {name: min(cpu_s for cpu_s, _ in runs) for name, runs in found.items()}
    waited_s = {name: statistics.median(elapsed_s for _, elapsed_s in runs) for name, runs in found.items()}
    for ours, bare in (("--help", "bare --help"), ("status", "bare command")):
        detail = (
            f"{least_s[ours] * 1e3:.0f} ms, {bare} {least_s[bare] * 1e3:.0f} ms; a person waits "
            f"{waited_s[ours] * 1e3:.0f} ms, {waited_s[ours] / waited_s[bare]:.2f} ×"
        )
        what = f"{ours}, of a bare Typer app"
        print(Line(what, least_s[ours] / least_s[bare], BARS[ours], at_most=True, detail=detail))


if __name__ == "__main__":
    main()
