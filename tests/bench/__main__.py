"""``python -m tests.bench [NAME …]``: every benchmark, one after the other, each in a process of its own.

Figures of a run stand in docs/explanation/benchmarks.md, with what was measured against what.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Run the benchmarks that are named, or all."""
    names = sys.argv[1:] or sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    failed = []
    for name in names:
        print(f"\n== {name} ==", flush=True)
        if subprocess.run([sys.executable, "-m", f"tests.bench.bench_{name}"], check=False).returncode != 0:
            failed.append(name)
    if failed:
        sys.exit(f"did not run to their end: {', '.join(failed)}")


if __name__ == "__main__":
    main()
