"""Checks that a pure effect is pure: called twice, in several processes, at other times, and watched for writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

from .processes import TIMEOUT_S, KitFailed
from .subject import Subject

CLOCKS: Final = (1_000_000_000.25, 1_000_000_000.25, 2_000_000_000.75)
"""Two processes at one instant, and one decades later: what differs tells the clock from chance."""


def impurity(subject: Subject) -> str | None:
    """A sentence on what makes the effect impure; None if nothing was seen."""
    answers = [_ask(subject, clock, hash_seed=place) for place, clock in enumerate(CLOCKS)]
    for answer in answers:
        if answer["wrote"]:
            return (
                f"it touched the outside world ({answer['wrote'][0]}). A pure effect only computes: implement "
                "effect_apply and choose a delivery"
            )
    for answer in answers:
        first, *others = answer["outcomes"]
        for other in others:
            if other != first:
                return (
                    f"one process got two outcomes, {first:.200} and {other:.200}: it depends on chance, on a clock "
                    "or on earlier calls. Compute from the text alone, or implement effect_apply"
                )
    here, again, later = (answer["outcomes"][0] for answer in answers)
    if here != again:
        return (
            f"two processes got two outcomes, {here:.200} and {again:.200}: it depends on chance, on the order of a "
            "set or on the process. Compute from the text alone (sort what has no order), or implement effect_apply"
        )
    if here != later:
        return (
            f"at another time it got another outcome, {here:.200} and {later:.200}: it looks at the clock. Compute "
            "from the text alone, or implement effect_apply"
        )
    return None


def _ask(subject: Subject, clock: float, *, hash_seed: int) -> dict[str, Any]:
    orders = subject.orders() | {"clock": clock}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "fencepost.plugins.testing.pure_child"],
            input=json.dumps(orders),
            capture_output=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise KitFailed(f"the effect did not answer within {TIMEOUT_S:g} seconds") from error
    if done.returncode != 0:
        raise KitFailed(f"the effect could not be asked: {done.stderr.strip()[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
