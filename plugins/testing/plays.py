"""Plays the rows of the matrix for one effect: which steps there are to be disturbed, and what is judged of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...core.model.documents import canonical
from ..rules import NAMESPACE
from ..settings import Given
from . import points as matrix
from .points import How, Point, Stop, Where
from .processes import KitFailed, WorkerHost
from .purity import impurity
from .results import Result
from .scenarios import NotReached, Played, Scenario
from .verdicts import judge, judge_fault, judge_outcomes

if TYPE_CHECKING:
    from .case import EffectCase

MAX_STEPS: Final = 40
"""How many steps of a kind are disturbed, spread evenly where there are more."""
RACES: Final = 8
"""How often two workers are let into the effect at once; a receiver's race may show only in some of the runs."""
SHORTEST_QUIET_S: Final = 0.25
FAULTS: Final[tuple[How, ...]] = ("error", "retry", "reject", "hold", "lease-lost")


class Step(NamedTuple):
    """A stop in the effect, and its description for people."""

    stop: Stop
    what: str


class Plays:
    """The rows of one effect, played one by one."""

    def __init__(self, case: EffectCase, host: WorkerHost) -> None:
        self._case = case
        self._host = host
        self._undisturbed: Played | None = None
        self._quiet_s = 5.0

    def rows_of(self, point: Point) -> list[Result]:
        """Play the rows of the point: one, or one for each mark."""
        if point is matrix.PURE:
            return [self._result(point, None, lambda: (impurity(self._case.subject()), None))]
        if point not in (matrix.IN_EFFECT, matrix.STALE_IN):
            return [self._result(point, None, lambda: self._play(point))]
        return [
            self._result(point, mark, lambda mark=mark: self._at_mark(point, mark))  # type: ignore[misc]
            for mark in self._look().marks()
        ]

    def _result(
        self, point: Point, mark: str | None, play: Callable[[], tuple[str | None, Played | None]]
    ) -> Result:
        case = self._case
        name = f"{point.name}:{mark}" if mark else point.name
        says = f"{point.says} at {mark!r}" if mark else point.says
        try:
            failure, played = play()
        except KitFailed as error:
            return Result(name, says, None, "-", f"it could not be played: {error}")
        accepted = case.accept.get(name, case.accept.get(point.name)) if failure else None
        if played is None:
            return Result(name, says, None, "-", failure, accepted)
        return Result(name, says, played.seen, played.state, failure, accepted)

    # -- what is played --

    def _play(self, point: Point) -> tuple[str | None, Played]:
        if point is matrix.UNDISTURBED:
            return self._judged(point, self._look(anew=True))
        if point is matrix.TWO_AT_ONCE:
            return self._worst(point, self._races())
        if point is matrix.FAILS_INSIDE:
            return self._worst(point, self._failures())
        if point is matrix.TWO_JOBS:
            return self._two_jobs(point)
        if point is matrix.PASSED_ON:
            return self._passed_on()
        return self._judged(point, self._once(point))

    def _once(self, point: Point) -> Played:
        scenario = self._scenario()
        if point is matrix.REDELIVERY:
            return scenario.delivered_again()
        if point is matrix.OTHER_NAMESPACE:
            return scenario.other_namespace(self._other_settings(), self._case.store_of(self._case.new_id()))
        assert point.where is not None, f"{point.name} has no stop"
        stop = Stop(point.where, point.how)
        if point is matrix.AFTER_EFFECT and not self._case.pure:
            return scenario.killed_after_return(stop)
        if point is matrix.LATE:
            return scenario.late(stop)
        if point is matrix.REDRIVEN:
            return scenario.redriven(stop)
        if point is matrix.CANNOT_SAY:
            return scenario.silent(stop)
        return scenario.overtaken(stop) if point.how == "stall" else scenario.disturbed(stop)

    def _at_mark(self, point: Point, mark: str) -> tuple[str | None, Played]:
        stop = Stop("mark", point.how, mark)
        scenario = self._scenario()
        return self._judged(
            point, scenario.overtaken(stop) if point is matrix.STALE_IN else scenario.disturbed(stop)
        )

    def _races(self) -> Iterator[tuple[Played, str]]:
        """Two workers in the effect: let in at once, and one of them at each step of the other one."""
        together = Stop("before", "stall")
        yield self._scenario().together(together), ""
        for step in [Step(together, ""), *self._steps("answer", "stall"), *self._steps("received", "stall")]:
            try:
                yield self._scenario().overtaken(step.stop), step.what
            except NotReached:  # another attempt may take another way
                continue
        for _ in range(RACES - 1):
            yield self._scenario().together(together), ""

    def _failures(self) -> Iterator[tuple[Played, str]]:
        """A fault at each mark, at each call and its answer, and in each exchange over the network."""
        marks = [
            Step(Stop("mark", "time-out", mark), f"at the mark {mark!r}") for mark in self._look().marks()
        ]
        network = [
            *self._steps("connection", "refused"),
            *self._steps("received", "time-out"),
            *self._steps("received", "reset"),
            *self._steps("expected", "time-out"),
        ]
        for step in [*marks, *network, *self._steps("call", "time-out"), *self._steps("answer", "time-out")]:
            try:
                yield self._scenario().disturbed(step.stop), step.what
            except NotReached:  # another attempt may take another way
                continue
        if self._case.info.delivery == "probed":
            yield from self._failing_questions()

    def _failing_questions(self) -> Iterator[tuple[Played, str]]:
        applied = Stop("after", "kill")
        asked = self._scenario().asked(applied, None)
        yield self._scenario().asked(applied, Stop("asked", "time-out")), "in effect_reconcile"
        for where, fault, kind in (
            ("connection", "refused", "connection"),
            ("received", "time-out", "received"),
            ("call", "time-out", "call"),
            ("answer", "time-out", "answer"),
        ):
            for step in _spread(asked.steps(kind), where, fault):  # type: ignore[arg-type]
                yield self._scenario().asked(applied, step.stop), f"{step.what} in effect_reconcile"

    def _two_jobs(self, point: Point) -> tuple[str | None, Played]:
        """Two jobs through one worker: in turn, then at once, with the first one waiting at each of its lines."""
        case = self._case
        self._look()  # it measures how long the other job may take
        scenario = self._scenario()
        played = in_turn = scenario.two_jobs(case.new_id())
        failure = judge(case.info, point, played, pure=case.pure) or self._mixed(scenario)
        for step in _spread(in_turn.steps("line"), "line", "wait") if failure is None else []:
            scenario = self._scenario()
            played = scenario.two_jobs(case.new_id(), stop=step.stop, at_once=True)
            failure = judge(case.info, point, played, pure=case.pure)
            if failure is not None:
                failure = f"{failure} (the first job was at {step.what} when the other one passed it)"
                break
        if failure is not None and case.info.delivery == "local" and played.seen == 1:
            # A world that shows equal jobs as one thing shows it, too, where each has a worker of its own.
            apart = self._scenario().apart(case.new_id())
            if apart.seen == 1:
                return None, apart
        return failure, played

    def _mixed(self, scenario: Scenario) -> str | None:
        """Whether one of two jobs has the other one's outcome."""
        case = self._case
        if case.info.delivery == "once":
            return None
        outcomes, alone = scenario.outcomes(), scenario.repeated()
        if not case.pure and case.info.delivery == "local":
            same = outcomes[0] is not None and canonical(outcomes[0]) == canonical(outcomes[1])
            steady = alone[0] is not None and canonical(alone[0]) == canonical(outcomes[0])
            if not (same and steady):
                return None  # a local effect may say something else each time
        return judge_outcomes(outcomes, alone, pure=case.pure)

    def _passed_on(self) -> tuple[str | None, Played]:
        """What the effect raises, through all the middleware around it."""
        for fault in FAULTS:
            job, played = self._scenario().faulted(Stop("before", fault))
            failure = judge_fault(self._case.info, fault, job, played)
            if failure is not None:
                break
        return failure, played

    # -- their parts --

    def _look(self, *, anew: bool = False) -> Played:
        """The undisturbed row, which shows the steps of the effect."""
        if self._undisturbed is None or anew:
            scenario = self._scenario()
            self._undisturbed = scenario.undisturbed()
            self._quiet_s = max(SHORTEST_QUIET_S, 2 * scenario.took_s)
        return self._undisturbed

    def _steps(self, kind: Where, how: How) -> list[Step]:
        return _spread(self._look().steps(kind), kind, how)

    def _scenario(self) -> Scenario:
        case = self._case
        if case.reset is not None:
            case.reset()
        id = case.new_id()
        return Scenario(self._host, case.subject(), id=id, store=case.store_of(id), quiet_s=self._quiet_s)

    def _judged(self, point: Point, played: Played, step: str = "") -> tuple[str | None, Played]:
        return judge(self._case.info, point, played, pure=self._case.pure, step=step), played

    def _worst(self, point: Point, plays: Iterator[tuple[Played, str]]) -> tuple[str | None, Played]:
        """The first play that shows a broken promise, else the last one."""
        failure = None
        for played, step in plays:
            failure, last = self._judged(point, played, step)[0], played
            if failure is not None:
                return failure + (
                    f" ({'failed' if point is matrix.FAILS_INSIDE else 'overtaken'} {step})" if step else ""
                ), last
        return None, last

    def _other_settings(self) -> Mapping[str, Any]:
        settings = dict(self._case.subject().settings)
        own = settings[NAMESPACE]
        settings[NAMESPACE] = f"{own.value if isinstance(own, Given) else own}-other"
        return settings


def _spread(steps: Sequence[str], where: Where, how: How) -> list[Step]:
    """The steps as stops; some of them, spread evenly, where there are too many."""
    # Of a step that a loop takes again and again the first and the last time are enough.
    first = {what: number for number, what in reversed(list(enumerate(steps)))}
    last = {what: number for number, what in enumerate(steps)}
    chosen = sorted({*first.values(), *last.values()})
    if len(chosen) > MAX_STEPS:
        chosen = [chosen[place * len(chosen) // MAX_STEPS] for place in range(MAX_STEPS)]
    kinds = {
        "call": "before",
        "answer": "after",
        "expected": "after",
        "connection": "at",
        "received": "after",
        "line": "at",
    }
    return [Step(Stop(where, how, number), f"{kinds[where]} {steps[number]}") for number in chosen]
