"""``python -m tests.soak [KIND | STORE]``: the long form."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.postgres_server import server
from tests.soak.memory import growth_kib
from tests.soak.run import restart_and_crash, soak

KILLS = 200
JOBS_PER_PRODUCER = 6_000
MEMORY_JOBS = 100_000
FEW = 400
"""How many jobs a producer makes in a folder, which carries some thousands."""


@dataclass(frozen=True, slots=True)
class Place:
    """A fresh store, what can happen to its server, and another store of its kind."""

    store: str
    jobs_per_producer: int = JOBS_PER_PRODUCER
    outages: Sequence[Callable[[], None]] = ()
    memory: str | None = None


@contextmanager
def place(name: str, folder: Path) -> Iterator[Place]:
    """A place of that kind, or the store of that name."""
    if name == "directory":
        yield Place(str(folder / "jobs"), FEW)
    elif name == "sqlite":
        yield Place(str(folder / "jobs.db"), memory=str(folder / "memory.db"))
    elif name == "postgres":
        with server(durable=True) as own:
            memory = f"{own.url}?fencepost_schema=memory"
            yield Place(own.url, outages=[*restart_and_crash(own), *restart_and_crash(own)], memory=memory)
    else:
        yield Place(name)


def main() -> None:
    """Run the soaks, and print their accounts."""
    name = sys.argv[1] if len(sys.argv) > 1 else "sqlite"
    with tempfile.TemporaryDirectory(prefix="fencepost-soak-") as folder, place(name, Path(folder)) as chosen:
        seed = int(time.time())
        print(f"soak over {chosen.store}, seed {seed}", flush=True)
        started = time.monotonic()
        account = soak(
            chosen.store,
            Path(folder),
            kills=KILLS,
            jobs_per_producer=chosen.jobs_per_producer,
            seed=seed,
            outages=chosen.outages,
        )
        print(f"{account} in {time.monotonic() - started:.0f} s: every promise held", flush=True)
        if chosen.memory is not None:
            grown = growth_kib(chosen.memory, jobs=MEMORY_JOBS, mark=MEMORY_JOBS // 5)
            print(f"memory: {grown:+,} KiB between job {MEMORY_JOBS // 5:,} and job {MEMORY_JOBS:,}")


if __name__ == "__main__":
    main()
