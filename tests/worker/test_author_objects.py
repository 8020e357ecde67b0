"""Whatever an author's object does while a verdict is made of it, the attempt ends as a failed one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fencepost.core import Hold, Ledger, Reject, Retry, Stamps
from fencepost.core.model.effect import Applied, Unknown

from tests.worker.doubles import Acting, raising
from tests.worker.test_worker import NOW, add, follow, job_of, run


@pytest.fixture
def ledger(make_ledger: Callable[[], Ledger]) -> Ledger:
    return make_ledger()


class Exits:
    """An object that ends the program wherever it is looked at."""

    def __str__(self) -> str:
        raise SystemExit("no words")

    __repr__ = __format__ = __str__  # type: ignore[assignment]


class Words(str):
    """A text whose methods answer with something else."""

    def replace(self, *_: Any) -> Any:
        return 3

    def __format__(self, _: str) -> str:
        raise KeyboardInterrupt


class RateLimited(Retry):
    """As people write it: without ``super().__init__``."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


class Lying(Retry):
    """A retry whose delay is a property that fails."""

    @property
    def after_s(self) -> float:
        raise SystemExit("no delay")

    @after_s.setter
    def after_s(self, value: float) -> None:
        pass


class Mute(Retry, Exits):
    __str__ = Exits.__str__


class MuteReject(Reject):
    __str__ = Exits.__str__


class MuteHold(Hold):
    __str__ = Exits.__str__


class MuteError(BaseException):
    __str__ = Exits.__str__


class Named(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise GeneratorExit


class Nameless(Exception, metaclass=Named):
    pass


class Outcome(Mapping[str, Any]):
    """An outcome that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise SystemExit

    def __iter__(self) -> Any:
        raise asyncio.CancelledError

    def __len__(self) -> int:
        return 1


def late(after_s: Any) -> Retry:
    signal = Retry("later")
    signal.after_s = after_s
    return signal


def from_odd_module(_: Any) -> Any:
    globals_: dict[str, Any] = {"__name__": Exits(), "__loader__": Exits()}
    exec("def fail(): raise ValueError('no')", globals_)
    globals_["fail"]()


def returning(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


QUEUED_AGAIN: dict[str, Callable[[Any], Any]] = {
    "a retry without its own start": raising(RateLimited(3)),
    "a retry after a word": raising(late("soon")),
    "a retry after an object that exits": raising(late(Exits())),
    "a retry after infinity": raising(late(float("inf"))),
    "a retry after a number too large for a float": raising(late(10**400)),
    "a retry whose delay exits": raising(Lying("later")),
    "a retry that exits when it is read": raising(Mute("later")),
    "an error that exits when it is read": raising(MuteError()),
    "an error whose class has no name": raising(Nameless("no")),
    "an error with a text of its own kind": raising(ValueError(Words("no"))),
    "an error of a module with an odd name": from_odd_module,
    "a cancellation": raising(asyncio.CancelledError()),
    "an interrupt": raising(KeyboardInterrupt()),
    "the end of a generator": raising(GeneratorExit()),
    "an outcome that cannot be read": returning(Outcome()),
    "an outcome that exits": returning({"x": Exits()}),
}


@pytest.mark.parametrize("apply", QUEUED_AGAIN.values(), ids=QUEUED_AGAIN)
def test_the_job_is_queued_again_with_an_error_and_the_worker_goes_on(
    ledger: Ledger, apply: Callable[[Any], Any]
) -> None:
    add(ledger)
    add(ledger, "other", id="b")
    other = Acting(name="other")
    events = {event.id: event for event in run(ledger, Acting(apply), other)}
    assert (events["a"].state, events["b"].state) == ("queued", "completed")
    job = job_of(ledger)
    assert (job.state, job.attempts) == ("queued", 1)
    assert events["a"].error
    assert job.last_error == events["a"].error


@pytest.mark.parametrize(
    ("signal", "state"), [(MuteReject("no"), "dead"), (MuteHold("no"), "held")], ids=["reject", "hold"]
)
def test_a_signal_that_exits_when_it_is_read_still_says_how_the_job_goes_on(
    ledger: Ledger, signal: BaseException, state: str
) -> None:
    add(ledger)
    (event,) = run(ledger, Acting(raising(signal)), max_jobs=1)
    assert (event.state, job_of(ledger).state) == (state, state)


def test_a_retry_with_a_wrong_delay_is_a_retry_after_the_usual_backoff_and_says_so(ledger: Ledger) -> None:
    add(ledger)
    (event,) = run(ledger, Acting(raising(late("soon"))), max_jobs=1)
    assert event.error is not None
    assert event.error.startswith("later\n(the usual backoff")
    assert "must be a number of seconds, not 'soon'" in event.error
    assert job_of(ledger).run_at_ms > NOW


UNREADABLE: dict[str, Any] = {
    "applied with an outcome that cannot be read": Applied(Outcome()),
    "applied with an outcome that exits": Applied({"x": Exits()}),  # type: ignore[dict-item]
    "unknown for a reason that exits": Unknown(Exits()),  # type: ignore[arg-type]
    "unknown for a reason with an odd format": Unknown(Words("?")),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_an_answer_of_the_receiver_that_cannot_be_read_leaves_it_unknown_and_the_job_is_held_at_last(
    ledger: Ledger, answer: Any
) -> None:
    add(ledger, stamps=Stamps(max_attempts=2))
    effect = Acting(raising(ValueError("no")), delivery="probed", reconcile=lambda request: answer)
    (event,) = run(ledger, effect, max_jobs=1)
    assert event.state == "queued"
    (event,) = run(ledger, effect, max_jobs=1, now_ms=job_of(ledger).run_at_ms)
    assert event.state == "held"
    assert len(effect.applied) == 1, "in doubt it is never applied"


def test_once_is_held_whatever_its_error_does(ledger: Ledger) -> None:
    add(ledger)
    (event,) = run(ledger, Acting(raising(MuteError()), delivery="once"), max_jobs=1)
    assert event.state == "held"


def test_a_following_worker_goes_on_too(ledger: Ledger) -> None:
    for number, _ in enumerate(QUEUED_AGAIN):
        add(ledger, f"act-{number}", id=f"job-{number}")
    effects = [Acting(apply, name=f"act-{number}") for number, apply in enumerate(QUEUED_AGAIN.values())]
    events = follow(ledger, *effects, concurrency=4, max_attempts=1)
    assert {event.id for event in events} == {f"job-{number}" for number, _ in enumerate(QUEUED_AGAIN)}
    assert all(event.state == "dead" for event in events)
