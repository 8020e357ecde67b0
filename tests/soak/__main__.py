"""``python -m tests.soak [STORE]``: the long form."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.soak.memory import growth_kib
from tests.soak.run import soak

KILLS = 200
JOBS_PER_PRODUCER = 6_000
MEMORY_JOBS = 100_000


def main() -> None:
    """Run the soaks, and print their accounts."""
    with tempfile.TemporaryDirectory(prefix="fencepost-soak-") as name:
        folder = Path(name)
        store = sys.argv[1] if len(sys.argv) > 1 else str(folder / "jobs.db")
        seed = int(time.time())
        print(f"soak over {store}, seed {seed}", flush=True)
        started = time.monotonic()
        account = soak(store, folder, kills=KILLS, jobs_per_producer=JOBS_PER_PRODUCER, seed=seed)
        print(f"{account} in {time.monotonic() - started:.0f} s: every promise held", flush=True)
        grown = growth_kib(str(folder / "memory.db"), jobs=MEMORY_JOBS, mark=MEMORY_JOBS // 5)
        print(f"memory: {grown:+,} KiB between job {MEMORY_JOBS // 5:,} and job {MEMORY_JOBS:,}")


if __name__ == "__main__":
    main()
