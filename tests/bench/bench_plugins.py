"""What plugins cost: a call through pluggy beside a direct one, and ten installed plugins beside none.

python -m tests.bench.bench_plugins
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fencepost.core.model.job import Job
from fencepost.core.model.receipts import Receipt
from fencepost.plugins.manager import Plugins

CALLS = 50_000
SLICES = 7
STARTS = 15
CALL_BAR_US = 8.0
HELP_BAR = 1.05

EFFECT = """
from fencepost.plugins import EffectInfo, hookimpl

@hookimpl
def effect_info():
    return EffectInfo(name="{name}", summary="Does nothing.")

@hookimpl
def effect_outcome(text):
    return {{}}
"""
WRAPPER = """
from fencepost.plugins import hookimpl

@hookimpl(wrapper=True)
def effect_outcome(text):
    return (yield)
"""


def install(site: Path, name: str, source: str) -> None:
    """A distribution with one plugin, as pip leaves it."""
    (site / f"plugin_{name}.py").write_text(source)
    metadata = site / f"fencepost_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fencepost-{name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[fencepost]\n{name} = plugin_{name}\n")


def each_us(call: Callable[[], object]) -> float:
    """Microseconds of one call: the median of some slices."""
    found = []
    for _ in range(SLICES):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - started) / CALLS * 1e6)
    return statistics.median(found)


def start_ms(arguments: list[str], site: Path | None) -> float:
    """Milliseconds that a command takes, from its start to its end."""
    environment = os.environ | ({"PYTHONPATH": str(site)} if site else {})
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "fencepost.core.cli", *arguments],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return (time.perf_counter() - started) * 1e3


def verdict(value: float, bar: float, unit: str) -> str:
    """How a cost stands to its bar."""
    return f"{value:.2f}{unit} (bar {bar:g}: {'pass' if value <= bar else 'MISS'})"


def calls(site: Path) -> None:
    """What one call costs."""
    sys.path.insert(0, str(site))
    plugins = Plugins.load()
    effect = plugins.choose("n0")
    import plugin_n0  # type: ignore[import-not-found]

    direct = each_us(lambda: plugin_n0.effect_outcome("a few words"))
    through = each_us(lambda: effect.outcome("a few words"))
    print(f"a no-op effect, ten installed: direct {direct:.2f} µs, through pluggy {through:.2f} µs")
    print(f"  above a direct call            {verdict(through - direct, CALL_BAR_US, ' µs')}")
    (site / "around.py").write_text(WRAPPER)
    wrapped = Plugins.load(modules=["around"]).choose("n0")
    print(
        f"  and with one wrapper around it {each_us(lambda: wrapped.outcome('a few words')) - direct:.2f} µs"
    )
    count = plugins.choose("count")
    print(f"  count, of eleven words         {each_us(lambda: count.outcome('word ' * 11)):.2f} µs")
    job, receipt = Job("a"), Receipt("a", "0", {})
    observers = plugins.observers

    def tell() -> None:
        observers.job_claimed(job)
        observers.job_completed(job, receipt, False)

    print(f"  observers of a job, nobody     {each_us(tell):.2f} µs")


def starts(site: Path) -> None:
    """What installed plugins cost a command, turn by turn with none installed."""
    for arguments in (["--help"], ["plugins"]):
        bare, full = [], []
        for _ in range(STARTS):
            bare.append(start_ms(arguments, None))
            full.append(start_ms(arguments, site))
        without, with_ten = min(bare), min(full)  # whatever else the machine does only adds to it
        said = (
            f"fencepost {' '.join(arguments)}: {without:.0f} ms, with ten plugins installed {with_ten:.0f} ms"
        )
        ratio = verdict(with_ten / without, HELP_BAR, " of it") if arguments == ["--help"] else ""
        print(f"{said}   {ratio}")


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        for place in range(10):
            install(site, f"n{place}", EFFECT.format(name=f"n{place}"))
        starts(site)
        calls(site)


if __name__ == "__main__":
    main()
