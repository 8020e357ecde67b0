"""The random walk: the same moves and clocks on a ledger and on the model, and everything that is seen compared.

    def test_my_ledger_walks_like_the_model(new_store):
        walk(new_store)

Few ids, queues and instants, so that what is rare elsewhere happens all the time: a stale fence, a clock that
steps back over a boundary, an old id made anew. Needs hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from ..errors import FencepostError
from ..ledgers.protocol import Ledger
from ..model.documents import canonical
from ..model.inputs import Input, NewJob
from ..model.job import (
    ClaimRequest,
    Decision,
    Job,
    State,
)
from ..model.query import JobQuery
from ..model.receipts import Published, Receipt, Settlement
from ..model.records import Page, Row, Schedule
from .base import NewStore, Store, receipt
from .machine_moves import (
    EFFECT_OF,
    IDS,
    QUEUES,
    any_move,
    records,
)
from .model import ModelLedger
from .model_store import as_kept
from .transfer import export_all


def answer(call: Callable[[Ledger], object], ledger: Ledger) -> object:
    """What came of a call, in a form that can be compared."""
    try:
        return comparable(call(ledger))
    except FencepostError as error:
        return type(error)


def comparable(value: Any) -> Any:
    """The same value, but receipts by value and JSON type, and pages without their cursors."""
    match value:
        case Receipt():
            return canonical([value.document(), value.effect_version])
        case Published():
            return comparable(value.receipt), value.reused
        case Page():
            return value.jobs, value.next is None
        case Row():
            return value.id, value.job, value.purged_version, value.input, comparable(value.receipt)
        case list() | tuple():
            return [comparable(item) for item in value]
        case dict():
            return {key: comparable(item) for key, item in value.items()}
    return value


def seen(ledger: Ledger) -> dict[str, object]:
    """What is compared after each move."""
    return {
        "get_job": [ledger.get_job(id) for id in IDS],
        "jobs": ledger.jobs(),
        "counts": ledger.counts(),
        "receipts": ledger.receipts(IDS),
    }


def seen_closer(ledger: Ledger) -> dict[str, object]:
    """What is compared now and then: that which follows from the rest, or changes seldom."""
    schedules = ledger.capabilities.has_schedules
    return {
        "some jobs": ledger.jobs(JobQuery(states=["dead", "held"], queue="mail", limit=1)),
        "counts": [ledger.counts(queue=queue) for queue in QUEUES],
        "inputs": ledger.read_inputs(IDS),
        "audit": ledger.audit(),
        "paused": ledger.paused() if schedules else None,
        "schedules": [asdict(one) for one in ledger.schedules()] if schedules else None,
        "soonest": ledger.soonest() if schedules else None,
    }


def exported(ledger: Ledger) -> list[Row]:
    """All that is kept, read in small pages: the jobs in order, then ids without a job, which have no order."""
    rows = export_all(ledger, limit=2)
    return [row for row in rows if row.job] + sorted(
        (row for row in rows if not row.job), key=lambda row: row.id
    )


class LedgerMachine(RuleBasedStateMachine):
    """One walk; a subclass says in ``new_store`` over what."""

    new_store: ClassVar[NewStore]

    store: Store
    ledgers: list[Ledger]
    """Two connections to the same store; the first is the one that moves."""
    model: ModelLedger
    now_ms: int
    looks: int

    @initialize(start_ms=st.sampled_from([0, 1_000]), records=records)
    def open(self, start_ms: int, records: list[dict[str, Any]]) -> None:
        """A fresh store, and a model that keeps what this kind of ledger keeps."""
        self.store = type(self).new_store()
        self.ledgers = [self.store.open(), self.store.open()]
        self.model = ModelLedger(capabilities=self.ledgers[0].capabilities)
        self.now_ms = start_ms
        self.looks = 0
        self.enqueue(0, records)

    def teardown(self) -> None:
        """Compare all that there is, and let go."""
        if hasattr(self, "ledgers"):
            self.both(seen_closer)
            self.both(exported)
            for ledger in self.ledgers:
                ledger.close()

    def make(self, move: tuple[str, dict[str, Any]]) -> None:
        """Make a move that was drawn."""
        name, arguments = move
        note(f"{name}({arguments})")
        getattr(self, name)(**arguments)

    # -- how both are moved and compared --

    def both(self, call: Callable[[Ledger], object]) -> None:
        """Call both; their answers, or the errors that they raise, are the same."""
        want = answer(call, self.model)
        assert answer(call, self.ledgers[0]) == want

    def step(self, step: int) -> int:
        """Let the clock go on, or back."""
        self.now_ms = max(0, self.now_ms + step)
        return self.now_ms

    def fence(self, id: str, distance: int) -> int:
        """The current fence of the job, or one beside it."""
        job = self.model.get_job(id)
        return (1 if job is None else job.version) + distance

    def target(self, place: int, *states: State) -> str:
        """A job in one of these states, if there is any and ``place`` does not say otherwise."""
        fitting = [id for id in IDS if (job := self.model.get_job(id)) and job.state in states]
        return IDS[place % len(IDS)] if place >= 14 or not fitting else fitting[place % len(fitting)]

    def later(self, span: int | None) -> int | None:
        """The instant that comes ``span`` milliseconds from now; None where there is no span."""
        return None if span is None else self.now_ms + span

    # -- connections --

    def go_on_through_another_connection(self, reopen: bool) -> None:
        """The next moves go through a connection that has not seen the last ones, or through a new one."""
        self.ledgers.reverse()
        if reopen:
            self.ledgers.pop(0).close()
            self.ledgers.insert(0, self.store.open())

    # -- enqueue --

    def enqueue(self, step: int, records: list[dict[str, Any]]) -> None:
        """A request of some records, some of which conflict."""
        now_ms = self.step(step)
        jobs = [
            NewJob(
                id=record["id"],
                text="another text" if record["differs"] == "text" else f"text of {record['id']}",
                queue=record["queue"],
                effect="print" if record["differs"] == "effect" else EFFECT_OF[record["id"]],
                priority=record["priority"],
                run_at_ms=self.later(record["run_in"]),
                expires_at_ms=self.later(record["expires_in"]),
                stamps=record["stamps"],
            )
            for record in records
        ]
        self.both(lambda ledger: ledger.enqueue(jobs, now_ms=now_ms))

    def leave_an_input_without_a_job(self, id: str) -> None:
        """What a crash in the middle of an enqueue can leave."""
        if id not in self.model.read_inputs([id]):
            row = Row(id, None, None, Input(id, f"text of {id}"), None)
            self.both(lambda ledger: ledger.import_rows([row]))

    # -- claim --

    def claim(
        self,
        step: int,
        limit: int,
        lease_ms: int,
        max_attempts: int,
        queues: tuple[str, ...] | None,
        effects: tuple[str, ...] | None,
    ) -> None:
        """Reap jobs whose time has passed, and pick."""
        now_ms = self.step(step)

        def call(ledger: Ledger) -> object:
            return self.as_kept(
                ledger.claim(
                    ClaimRequest(
                        claimant="me",
                        lease_ms=lease_ms,
                        max_attempts=max_attempts,
                        limit=limit,
                        queues=queues,
                        effects=effects,
                    ),
                    now_ms=now_ms,
                )
            )

        self.both(call)

    def settle_and_claim(self, step: int, settlements: list[dict[str, int]]) -> None:
        """What a busy worker does all day."""
        now_ms, batch = self.step(step), self.batch(settlements)
        request = ClaimRequest("me", lease_ms=10, max_attempts=2, limit=2)

        def call(ledger: Ledger) -> object:
            settled, claimed = ledger.settle_and_claim(batch, request, now_ms=now_ms)
            return settled, self.as_kept(claimed)

        self.both(call)

    def as_kept(self, claimed: list[Job]) -> list[Job]:
        """The jobs without what this kind of ledger does not keep; a claim may tell more."""
        return [as_kept(job, self.model.capabilities) for job in claimed]

    # -- the owner --

    def begin(self, step: int, place: int, fence: int) -> None:
        """The attempt starts."""
        now_ms, id = self.step(step), self.target(place, "running")
        version = self.fence(id, fence)
        self.both(lambda ledger: ledger.begin(id, version, now_ms=now_ms))

    def heartbeat(self, step: int, place: int, fence: int, extend_ms: int) -> None:
        """The lease goes on."""
        now_ms, id = self.step(step), self.target(place, "running")
        version = self.fence(id, fence)
        self.both(lambda ledger: ledger.heartbeat(id, version, extend_ms=extend_ms, now_ms=now_ms))

    def complete(self, step: int, place: int, fence: int) -> None:
        """The work is done."""
        now_ms, id = self.step(step), self.target(place, "running")
        version = self.fence(id, fence)
        self.both(lambda ledger: ledger.complete(id, version, now_ms=now_ms))

    def publish(self, id: str, words: int) -> None:
        """A receipt is written, of a job or of none."""
        if id in self.model.read_inputs([id]):
            given = receipt(id, effect=EFFECT_OF[id], words=words)
            self.both(lambda ledger: ledger.publish(given))

    def settle(self, step: int, settlements: list[dict[str, int]]) -> None:
        """A batch is settled; each item succeeds or fails by itself."""
        now_ms, batch = self.step(step), self.batch(settlements)
        self.both(lambda ledger: ledger.settle(batch, now_ms=now_ms))

    def batch(self, settlements: list[dict[str, int]]) -> list[Settlement]:
        """The settlements of ids that are bound."""
        batch = []
        for drawn in settlements:
            id = self.target(drawn["place"], "running")
            if id in self.model.read_inputs([id]):
                given = receipt(id, effect=EFFECT_OF[id], words=drawn["words"])
                batch.append(Settlement(id, self.fence(id, drawn["fence"]), given))
        return batch

    def retry(
        self, step: int, place: int, fence: int, run_in: int | None, error: str | None, limit: int
    ) -> None:
        """The attempt failed."""
        now_ms, id = self.step(step), self.target(place, "running")
        version, run_at_ms = self.fence(id, fence), self.later(run_in)
        self.both(
            lambda ledger: ledger.retry(
                id, version, run_at_ms=run_at_ms, error=error, max_attempts=limit, now_ms=now_ms
            )
        )

    def fail(self, step: int, place: int, fence: int, error: str) -> None:
        """No attempt can help."""
        now_ms, id = self.step(step), self.target(place, "running")
        version = self.fence(id, fence)
        self.both(lambda ledger: ledger.fail(id, version, error=error, now_ms=now_ms))

    def release(self, step: int, place: int, fence: int) -> None:
        """The job is handed back."""
        now_ms, id = self.step(step), self.target(place, "running")
        version = self.fence(id, fence)
        self.both(lambda ledger: ledger.release(id, version, now_ms=now_ms))

    def hold(self, step: int, place: int, fence: int, error: str) -> None:
        """The job is held, because nobody knows whether its effect was applied."""
        now_ms, id = self.step(step), self.target(place, "running")
        version = self.fence(id, fence)
        self.both(lambda ledger: ledger.hold(id, version, error=error, now_ms=now_ms))

    # -- the operator --

    def cancel(self, step: int, place: int) -> None:
        """Not wanted any more."""
        now_ms, id = self.step(step), self.target(place, "queued", "running")
        self.both(lambda ledger: ledger.cancel(id, actor="me", reason="no need", now_ms=now_ms))

    def reschedule(self, step: int, place: int, run_in: int | None, priority: int | None) -> None:
        """Sooner, later, or before others."""
        now_ms, id = self.step(step), self.target(place, "queued")
        run_at_ms = None if run_in is None else now_ms + run_in
        if run_at_ms is None and priority is None:
            priority = 0
        self.both(lambda ledger: ledger.reschedule(id, run_at_ms=run_at_ms, priority=priority, now_ms=now_ms))

    def redrive(self, step: int, place: int) -> None:
        """Once more from the beginning."""
        now_ms, id = self.step(step), self.target(place, "dead")
        self.both(lambda ledger: ledger.redrive(id, now_ms=now_ms))

    def resolve(self, step: int, place: int, decision: Decision, words: int | None) -> None:
        """An operator has looked."""
        now_ms, id = self.step(step), self.target(place, "held")
        outcome = None if words is None else {"words": words}
        self.both(
            lambda ledger: ledger.resolve(id, decision=decision, outcome=outcome, actor="me", now_ms=now_ms)
        )

    def purge(self, step: int, place: int) -> None:
        """Forgotten, but for its text."""
        now_ms, id = self.step(step), self.target(place, "dead")
        self.both(lambda ledger: ledger.purge(id, now_ms=now_ms))

    def sweep(self, step: int, queue: str | None) -> None:
        """What time has passed over goes."""
        now_ms = self.step(step)
        self.both(lambda ledger: ledger.sweep_expired(queue=queue, now_ms=now_ms))

    # -- pauses and schedules --

    def pause(self, step: int, queue: str) -> None:
        """A queue stops."""
        now_ms = self.step(step)
        self.both(lambda ledger: ledger.pause(queue, actor="me", now_ms=now_ms))

    def resume(self, step: int, queue: str) -> None:
        """It goes on."""
        now_ms = self.step(step)
        self.both(lambda ledger: ledger.resume(queue, actor="me", now_ms=now_ms))

    def register_or_unregister(
        self, step: int, every: str | None, queue: str, missed: str | None, overlap: str
    ) -> None:
        """A schedule is added, replaced or removed."""
        now_ms = self.step(step)
        if every is None:
            self.both(lambda ledger: ledger.unregister_schedule("beat"))
        else:
            schedule = Schedule("beat", every, "tick", queue, missed=missed, overlap=overlap)
            self.both(lambda ledger: ledger.register_schedule(schedule, now_ms=now_ms))

    def tend_schedule(self, step: int, verb: str) -> None:
        """An operator pauses it, lets it go on, or fires it by hand."""
        now_ms = self.step(step)
        verbs: dict[str, Callable[[Ledger], object]] = {
            "pause": lambda ledger: ledger.pause_schedule("beat", actor="me", now_ms=now_ms),
            "resume": lambda ledger: ledger.resume_schedule("beat", actor="me", now_ms=now_ms),
            "run": lambda ledger: ledger.run_schedule("beat", actor="me", now_ms=now_ms),
        }
        self.both(verbs[verb])

    def apply_schedules(self, step: int, names: tuple[str, ...], dry_run: bool) -> None:
        """A whole set is applied; one of its names may be taken by hand."""
        now_ms = self.step(step)
        wanted = [Schedule(name, "@every 3s", f"tock {now_ms // 1_000}") for name in names]
        self.both(lambda ledger: ledger.apply_schedules(wanted, dry_run=dry_run, now_ms=now_ms))

    def tick(self, step: int) -> None:
        """What is due fires."""
        now_ms = self.step(step)
        self.both(lambda ledger: ledger.tick(now_ms=now_ms))

    # -- what is seen --

    @invariant()
    def everything_that_is_seen_is_the_same(self) -> None:
        """Jobs, pages, counts, receipts, and what is due; every fifth time all the rest."""
        if not hasattr(self, "model"):
            return
        self.both(seen)
        self.compare_due(None)
        self.looks += 1
        if self.looks % 5 == 0:
            self.both(seen_closer)
            self.compare_due(["mail"])

    def compare_due(self, queues: list[str] | None) -> None:
        """What is due already may be reported as any instant that has passed."""
        want_ms = self.model.next_due_ms(queues=queues)
        found_ms = self.ledgers[0].next_due_ms(queues=queues)
        if want_ms is not None and want_ms <= self.now_ms:
            assert found_ms is not None
            assert found_ms <= self.now_ms
        else:
            assert found_ms == want_ms


def walk(new_store: NewStore, how: settings | None = None) -> None:
    """Walk at random over fresh stores; as often and as long as hypothesis' settings say.

    Raises:
        AssertionError: the ledger and the model differed; the shortest way there is printed.
    """
    with new_store().open() as ledger:
        schedules = ledger.capabilities.has_schedules
    # One rule for all moves: of many rules hypothesis leaves out half in each walk, and a walk without claims
    # goes nowhere.
    draw = rule(move=any_move(schedules))
    machine = type(
        "LedgerMachine",
        (LedgerMachine,),
        {"new_store": staticmethod(new_store), "make_a_move": draw(LedgerMachine.make)},
    )
    run_state_machine_as_test(machine, settings=how)
