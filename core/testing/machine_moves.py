"""The moves of the random walk: what is drawn for each, and how often it comes.

All of a move's arguments are one draw: hypothesis spends most of its time on the number of draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from hypothesis import strategies as st

from ..model.job import Stamps

IDS = ("a", "b", "c", "d", "e")
QUEUES = ("default", "mail")
EFFECT_OF = dict(zip(IDS, ("count", "send", "count", "send", "send"), strict=True))

Choices = Sequence[Any]
"""The values of one argument; one that is listed twice is drawn twice as often, and the first is the simplest."""

STEPS: Choices = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 5, 20, -1, -1, -6]
"""How far the clock moves before a move: seldom beyond a lease, sometimes back."""
SPANS: Choices = [0, 1, 2, 3, 5, 10, 30]
PLACES: Choices = range(16)
"""Which of the jobs in a suitable state is meant; 14 and 15: any job, suitable or not."""
FENCES: Choices = [*[0] * 12, -1, 1, -2]
"""How far the fence that is given lies from the current one."""
ATTEMPTS: Choices = [1, 2, 2, 3]
LEASES: Choices = [1, 5, 10, 20, 20, 30]
ERRORS: Choices = ["no", "", "a\0é𝔘"]
WORDS: Choices = [*[3] * 7, 4]
"""The outcome of an effect: nearly always the same, so that conflicts stay rare."""


def one_of_each(**choices: Choices) -> st.SearchStrategy[dict[str, Any]]:
    """A value for each argument, all by one draw."""

    def decode(number: int) -> dict[str, Any]:
        values = {}
        for name, options in choices.items():
            number, place = divmod(number, len(options))
            values[name] = options[place]
        return values

    return st.integers(0, prod(map(len, choices.values())) - 1).map(decode)


records = st.lists(
    one_of_each(
        id=IDS,
        differs=[*[None] * 48, "text", "effect"],
        queue=QUEUES,
        priority=[0, 0, 0, -1, 1],
        run_in=[*[None] * 7, *SPANS],
        expires_in=[*[None] * 14, *SPANS],
        stamps=[
            *[Stamps()] * 8,
            Stamps(visibility_timeout_s=0.002),
            Stamps(visibility_timeout_s=0.02),
            Stamps(max_attempts=1),
            Stamps(max_attempts=2, backoff_base_s=1.5),
            Stamps(dead_letter_retention_s=0),
            Stamps(dead_letter_retention_s=0.003),
            Stamps(0.002, 1, 1.5, 0.003),
            Stamps(0.02, 2, None, 0),
        ],
    ),
    min_size=2,
    max_size=5,
    unique_by=lambda record: record["id"],
)
settlements = st.lists(one_of_each(place=PLACES, fence=FENCES, words=WORDS), max_size=2)

MOVES: dict[str, tuple[int, st.SearchStrategy[dict[str, Any]]]] = {
    "go_on_through_another_connection": (3, one_of_each(reopen=[False, True])),
    "enqueue": (4, st.fixed_dictionaries({"step": st.sampled_from(STEPS), "records": records})),
    "leave_an_input_without_a_job": (1, one_of_each(id=IDS)),
    "claim": (
        10,
        one_of_each(
            step=STEPS,
            limit=[1, 1, 1, 2, 3, 5],
            lease_ms=LEASES,
            max_attempts=ATTEMPTS,
            queues=[None, None, None, None, ("default",), ("mail",), ("mail", "default")],
            effects=[None, None, None, None, ("count",), ("send",), ("send", "count")],
        ),
    ),
    "settle_and_claim": (
        2,
        st.fixed_dictionaries({"step": st.sampled_from(STEPS), "settlements": settlements}),
    ),
    "begin": (4, one_of_each(step=STEPS, place=PLACES, fence=FENCES)),
    "heartbeat": (2, one_of_each(step=STEPS, place=PLACES, fence=FENCES, extend_ms=SPANS)),
    "complete": (2, one_of_each(step=STEPS, place=PLACES, fence=FENCES)),
    "publish": (1, one_of_each(id=IDS, words=WORDS)),
    "settle": (1, st.fixed_dictionaries({"step": st.sampled_from(STEPS), "settlements": settlements})),
    "retry": (
        3,
        one_of_each(
            step=STEPS,
            place=PLACES,
            fence=FENCES,
            run_in=[*[None] * 7, *SPANS],
            error=[None, *ERRORS],
            limit=ATTEMPTS,
        ),
    ),
    "fail": (1, one_of_each(step=STEPS, place=PLACES, fence=FENCES, error=ERRORS)),
    "release": (2, one_of_each(step=STEPS, place=PLACES, fence=FENCES)),
    "hold": (1, one_of_each(step=STEPS, place=PLACES, fence=FENCES, error=ERRORS)),
    "cancel": (1, one_of_each(step=STEPS, place=PLACES)),
    "reschedule": (
        2,
        one_of_each(step=STEPS, place=PLACES, run_in=[None, *SPANS], priority=[None, None, -1, 0, 1]),
    ),
    "redrive": (2, one_of_each(step=STEPS, place=PLACES)),
    "resolve": (
        2,
        one_of_each(
            step=STEPS,
            place=PLACES,
            decision=["applied", "applied", "retry", "fail"],
            words=[*[None] * 8, *WORDS],
        ),
    ),
    "purge": (1, one_of_each(step=STEPS, place=PLACES)),
    "sweep": (2, one_of_each(step=STEPS, queue=[None, None, *QUEUES])),
}
"""How often each move comes, and its arguments."""

MOVES_OF_SCHEDULES: dict[str, tuple[int, st.SearchStrategy[dict[str, Any]]]] = {
    "pause": (1, one_of_each(step=STEPS, queue=QUEUES)),
    "resume": (2, one_of_each(step=STEPS, queue=QUEUES)),
    "register_or_unregister": (
        2,
        one_of_each(
            step=STEPS,
            every=["@every 1s", "@every 1s", "@every 2s", "* * * * *", None],
            queue=QUEUES,
            missed=[None, None, "latest", "none"],
            overlap=["allow", "skip"],
        ),
    ),
    "tick": (2, one_of_each(step=[0, 999, 1_000, 2_500, -1_000, 61_000])),
    "tend_schedule": (2, one_of_each(step=STEPS, verb=["pause", "resume", "resume", "run"])),
    "apply_schedules": (
        1,
        one_of_each(
            step=STEPS, names=[(), ("late",), ("late", "later"), ("beat",)], dry_run=[False, False, True]
        ),
    ),
}
"""More moves, for ledgers that have schedules and pauses."""


def any_move(schedules: bool) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """One move: the name of a method of the machine, and its arguments."""
    table = MOVES | MOVES_OF_SCHEDULES if schedules else MOVES
    weighted = [name for name, (weight, _) in table.items() for _ in range(weight)]
    named = {name: st.tuples(st.just(name), draw) for name, (_, draw) in table.items()}
    return st.sampled_from(weighted).flatmap(named.__getitem__)
