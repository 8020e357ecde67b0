"""What it costs to start: `fencepost --help` and `fencepost status` beside a bare Typer app, in turns.

python -m tests.bench.bench_startup
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 21
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


def elapsed_s(command: list[str]) -> float:
    """One run of a command, from its start to its end."""
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    """Measure, each beside its bare twin."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare, ours = folder / "bare.py", folder / "ours.py"
        bare.write_text(BARE)
        ours.write_text(FENCEPOST)
        store = str(folder / "store")
        (folder / "in.json").write_text(json.dumps([{"id": f"j{n}", "text": "x"} for n in range(10)]))
        subprocess.run(
            [sys.executable, str(ours), "enqueue", "--store", store, "--input", str(folder / "in.json")],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        commands = {
            "bare --help": [sys.executable, str(bare), "--help"],
            "bare command": [sys.executable, str(bare), "one"],
            "--help": [sys.executable, str(ours), "--help"],
            "status": [sys.executable, str(ours), "status", "--store", store],
        }
        found: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                found[name].append(elapsed_s(command))
        medians = {name: statistics.median(times) for name, times in found.items()}
    for ours_name, bare_name in (("--help", "bare --help"), ("status", "bare command")):
        ratio = medians[ours_name] / medians[bare_name]
        bar = BARS[ours_name]
        print(
            f"{ours_name:7} {medians[ours_name] * 1e3:6.0f} ms, {bare_name:12} {medians[bare_name] * 1e3:6.0f} ms:"
            f" {ratio:5.2f} × (bar {bar}: {'pass' if ratio <= bar else 'MISS'}), medians of {RUNS}"
        )


if __name__ == "__main__":
    main()
