"""The soak itself: processes over one ledger, chaos, recovery, and the account at the end.

python -m tests.soak [directory | sqlite | postgres | STORE]      200 kills, and 100,000 jobs with flat memory
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.core import JobQuery, Ledger, open_ledger

from tests.postgres_server import Server
from tests.programs import FENCEPOST, catches_sigterm

EFFECTS = ("count", "soak-local", "soak-keyed", "soak-once")
PLUGINS = ("tests.soak.effects:LOCAL", "tests.soak.effects:KEYED", "tests.soak.effects:ONCE")
ROOT = Path(__file__).parents[2]
LEASE_MS = 400
LIMIT_S = 240.0
PATIENCE_S = 1.0

PRODUCE = """
import sys
from fencepost.core import NewJob, Stamps, open_ledger
store, name, count, effects = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
with open_ledger(store) as ledger:
    for n in range(count):
        effect = effects[n % len(effects)]
        ledger.enqueue([NewJob(f"{name}-{n}", f"text {n}", effect=effect, stamps=Stamps(max_attempts=1000))])
"""


@dataclass(frozen=True, slots=True)
class Account:
    """What a soak came to."""

    jobs: int
    kills: int
    stops: int
    outages: int
    """How often the server went away under all of them."""
    lines: dict[str, int]
    held: int
    lost_events: int


class Soak:
    """Producers and workers over a store, each restarted when it ends."""

    def __init__(
        self, store: str, folder: Path, *, jobs_per_producer: int, seed: int, workers: int = 3
    ) -> None:
        self.store = store
        self.world = folder / "world"
        (self.world / "keys").mkdir(parents=True)
        self._outputs = folder / "outputs"
        self._outputs.mkdir()
        self._random = random.Random(seed)
        self._jobs = jobs_per_producer
        self._started = 0
        self.kills = self.stops = self.outages = 0
        self._producers = {name: self._produce(name) for name in ("left", "right")}
        self._workers = [self._work() for _ in range(workers)]
        self._held: dict[str, float] = {}
        self._stopped: list[tuple[float, subprocess.Popen[bytes]]] = []

    def _produce(self, name: str) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-c", PRODUCE, self.store, name, str(self._jobs), ",".join(EFFECTS)]
        return subprocess.Popen(arguments, stderr=subprocess.DEVNULL)

    def _work(self) -> subprocess.Popen[bytes]:
        self._started += 1
        options = ["--follow", "--lease-ms", str(LEASE_MS), "--concurrency", "2", "--grace", "30"]
        settings = ["--set", "soak-keyed.namespace=soak"]
        with open(self._outputs / f"worker-{self._started}", "wb") as out:
            return subprocess.Popen(
                [
                    *FENCEPOST,
                    *("worker", "--store", self.store, *options, *settings),
                    *(part for name in PLUGINS for part in ("--plugin", name)),
                ],
                stdout=out,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, "FENCEPOST_SOAK_WORLD": str(self.world)},
            )

    def chaos(self, kills: int, outages: Sequence[Callable[[], None]] = ()) -> None:
        """Kill and stop processes at random until so many were killed; the outages come evenly in between."""
        while self.kills < kills:
            time.sleep(self._random.uniform(0.05, 0.5))
            self._wake_stopped()
            if self.outages < self.kills * (len(outages) + 1) // kills:
                outages[self.outages]()
                self.outages += 1
            action = self._random.random()
            if action < 0.25 and any(producer.poll() is None for producer in self._producers.values()):
                self._kill_producer()
            elif action < 0.8:
                self._kill_worker()
            else:
                self._stop_worker()
            self._restart_ended()

    def _kill_producer(self) -> None:
        name = self._random.choice(sorted(self._producers))
        self._producers[name].kill()
        self._producers[name].wait()
        self._producers[name] = self._produce(name)
        self.kills += 1

    def _kill_worker(self) -> None:
        place = self._random.randrange(len(self._workers))
        self._workers[place].kill()
        self._workers[place].wait()
        self._workers[place] = self._work()
        self.kills += 1

    def _stop_worker(self) -> None:
        worker = self._random.choice(self._workers)
        if all(worker is not stopped for _, stopped in self._stopped):
            worker.send_signal(signal.SIGSTOP)
            self._stopped.append((time.monotonic() + 2.5 * LEASE_MS / 1_000, worker))
            self.stops += 1

    def _wake_stopped(self, *, all_of_them: bool = False) -> None:
        now = time.monotonic()
        for entry in list(self._stopped):
            if all_of_them or entry[0] <= now:
                entry[1].send_signal(signal.SIGCONT)
                self._stopped.remove(entry)

    def _restart_ended(self) -> None:
        for name, producer in self._producers.items():
            if producer.poll() not in (None, 0):
                self._producers[name] = self._produce(name)
        for place, worker in enumerate(self._workers):
            if worker.poll() is not None:
                self._workers[place] = self._work()

    def settle_down(self) -> Account:
        """Let everything finish in peace, and check the account."""
        self._wake_stopped(all_of_them=True)
        deadline = time.monotonic() + LIMIT_S
        held = 0
        with open_ledger(self.store) as ledger:
            while True:
                self._restart_ended()
                held += self._decide_held(ledger)
                counts = ledger.counts()
                produced = all(producer.poll() == 0 for producer in self._producers.values())
                if produced and counts["completed"] + counts["dead"] == 2 * self._jobs:
                    break
                assert time.monotonic() < deadline, f"not finished: {counts}"
                time.sleep(0.1)
            self.end_workers()
            return self._account(ledger, held)

    def end_workers(self) -> None:
        """Stop the workers in order."""
        for worker in self._workers:
            while not catches_sigterm(worker):  # one that was only just started
                time.sleep(0.02)
            worker.terminate()
        for worker in self._workers:
            assert worker.wait(timeout=60) == 0

    def kill_all(self) -> None:
        """Leave nothing running, whatever has happened."""
        for process in (*self._producers.values(), *self._workers):
            process.kill()
            process.wait()

    def _decide_held(self, ledger: Ledger) -> int:
        """What an operator does: look whether it was applied, and say so.

        Not before whoever had the job has had the time to finish: it may have lost its lease a moment ago, and be
        about to act all the same.
        """
        decided, now = 0, time.monotonic()
        held = ledger.jobs(JobQuery(states=["held"])).jobs
        seen = {job.id: self._held.get(job.id, now) for job in held}
        done = self._lines("once")
        for job in held:
            if now - seen[job.id] < PATIENCE_S:
                continue
            if job.id in done:
                ledger.resolve(job.id, decision="applied", outcome={"applied": job.id}, actor="soak")
            else:
                ledger.resolve(job.id, decision="retry", actor="soak")
            decided += 1
        self._held = {job.id: seen[job.id] for job in held if now - seen[job.id] < PATIENCE_S}
        return decided

    def _lines(self, room: str) -> Counter[str]:
        path = self.world / room
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def _account(self, ledger: Ledger, held: int) -> Account:
        jobs, after = [], None
        while True:
            page = ledger.jobs(JobQuery(after=after))
            jobs += page.jobs
            after = page.next
            if after is None:
                break
        assert len(jobs) == 2 * self._jobs
        unfinished = [
            job for job in jobs if job.state != "completed" and not (job.state == "dead" and job.last_error)
        ]
        assert unfinished == []
        ids = [job.id for job in jobs if job.state == "completed"]
        receipts = {
            id: r for n in range(0, len(ids), 500) for id, r in ledger.receipts(ids[n : n + 500]).items()
        }
        assert receipts.keys() == set(ids), "every completed job has its receipt"

        local, once = self._lines("local"), self._lines("once")
        keyed = Counter(path.read_text() for path in (self.world / "keys").iterdir())
        by_effect = {effect: {job.id for job in jobs if job.effect == effect} for effect in EFFECTS}
        assert set(local) == by_effect["soak-local"], "local: applied at least once"
        wrong = keyed.items() ^ Counter(by_effect["soak-keyed"]).items()
        assert not wrong, f"keyed: the receiver did it exactly once, but {wrong}"
        assert set(once) == by_effect["soak-once"]
        assert all(count == 1 for count in once.values()), "once: never twice"
        return Account(
            jobs=len(jobs),
            kills=self.kills,
            stops=self.stops,
            outages=self.outages,
            lines={"local": local.total(), "keyed": keyed.total(), "once": once.total()},
            held=held,
            lost_events=self._check_events({job.id: job.version for job in jobs}),
        )

    def _check_events(self, versions: dict[str, int]) -> int:
        """No worker has reported success for a completion that was refused."""
        completed: Counter[str] = Counter()
        lost = 0
        for path in self._outputs.iterdir():
            for line in path.read_bytes().split(b"\n")[:-1]:
                event = json.loads(line)
                if event["state"] == "completed":
                    completed[event["id"]] += 1
                    assert event["version"] == versions[event["id"]], event
                lost += event["state"] == "lost"
        assert all(count == 1 for count in completed.values()), "one success for each job at most"
        return lost


def soak(
    store: str,
    folder: Path,
    *,
    kills: int,
    jobs_per_producer: int,
    seed: int,
    outages: Sequence[Callable[[], None]] = (),
) -> Account:
    """Run one soak on a fresh store, and return its account; AssertionError where a promise is broken.

    Args:
        outages: each is called once, and takes the server of the store away and back.
    """
    run = Soak(store, folder, jobs_per_producer=jobs_per_producer, seed=seed)
    try:
        run.chaos(kills, outages)
        return run.settle_down()
    finally:
        run.kill_all()


def restart_and_crash(server: Server) -> Sequence[Callable[[], None]]:
    """The two outages of a server: one in order, one in the middle of everything."""

    def outage(how: signal.Signals) -> None:
        server.stop(how)
        server.start()

    return [lambda: outage(signal.SIGINT), lambda: outage(signal.SIGQUIT)]
