"""Effects that break their promise, one fault each. The crash kit must find every one."""

import itertools
import os
import random
import socket
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from fencepost.plugins import (
    Applied,
    EffectInfo,
    EffectRequest,
    Hold,
    NotApplied,
    Reconciled,
    Setting,
    Unknown,
    hookimpl,
)
from good import WORLD, Keyed, Probed, Pure, ToWorld, open_world


class Appends:
    """Says local, and does one thing more each time."""

    folder = ""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name="appends", summary="s", settings={"folder": Setting("Where.", required=True)})

    @hookimpl
    def effect_configure(self, settings: dict[str, Any]) -> None:
        self.folder = settings["folder"]

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        with open(Path(self.folder, "log.txt"), "a") as log:
            log.write(f"{request.text}\n")
        request.mark("appended")
        return {}


class Buffers(Appends):
    """Returns before the work is durable."""

    kept: list[Any] = []  # noqa: RUF012 - that is the fault

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name="buffers", summary="s", settings={"folder": Setting("Where.", required=True)})

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        log = open(Path(self.folder, "log.txt"), "a")  # noqa: SIM115 - that is the fault
        self.kept.append(log)
        log.write(f"{request.text}\n")
        return {}


class KeyWithAttempt(Keyed):
    """Sends another key with each attempt."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            name="key-with-attempt",
            summary="s",
            delivery="keyed",
            receiver_key="the column key",
            settings=WORLD,
        )

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        request.idempotency_key += f"-{request.attempt}"
        return super().effect_apply(request)


class NoReplay(Keyed):
    """The receiver recognises the key, and the effect makes the answer up anew."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            name="no-replay", summary="s", delivery="keyed", receiver_key="the column key", settings=WORLD
        )

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        return super().effect_apply(request) | {"fence": request.fence}


class Lying(Probed):
    """A receiver that refuses nothing, and a reconcile that answers the same whatever is so."""

    name = "lying"
    answer: Reconciled = NotApplied()

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name=self.name, summary="s", delivery="probed", settings=WORLD)

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        open_world(self.path).execute("insert into done values (?)", [request.idempotency_key])
        return {}

    @hookimpl
    def effect_reconcile(self, request: EffectRequest) -> Reconciled:
        return self.answer


class SaysNo(Lying):
    name = "says-no"


class SaysYes(Lying):
    name = "says-yes"
    answer = Applied({})


class NeverKnows(Lying):
    name = "never-knows"
    answer = Unknown()


class Racy(Lying):
    """An honest reconcile, over a receiver that takes the same key twice."""

    name = "racy"

    @hookimpl
    def effect_reconcile(self, request: EffectRequest) -> Reconciled:
        known = open_world(self.path).execute("select 1 from done where key = ?", [request.idempotency_key])
        return Applied({}) if known.fetchone() else NotApplied()


class HoldsAlways(ToWorld):
    """Gives up where it should go on."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name="holds", summary="s", settings=WORLD)

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        if request.attempt > 1:
            raise Hold("this looks familiar")
        open_world(self.path).execute("insert into done values ('x')")
        return {}


@dataclass
class Impure(Pure):
    """A pure effect that is not."""

    how: str = ""

    @hookimpl
    def effect_outcome(self, text: str) -> dict[str, Any]:
        return {"is": HOWS[self.how](text)}


calls = itertools.count()
HOWS = {
    "time": lambda text: int(time.time()) // 86_400,
    "date": lambda text: datetime.now().date().isoformat(),
    "random": lambda text: random.random() < 0.5,
    "counter": lambda text: next(calls),
    "set-order": lambda text: list({f"{text}{n}" for n in range(20)}),
    "process": lambda text: os.getpid(),
    "write": lambda text: Path(os.devnull).write_text("x"),
    "network": lambda text: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", 9)),
}

appends, buffers = Appends(), Buffers()
key_with_attempt, no_replay = KeyWithAttempt(), NoReplay()
says_no, says_yes, never_knows, racy = SaysNo(), SaysYes(), NeverKnows(), Racy()
holds = HoldsAlways()
for _how in HOWS:
    globals()[f"impure_{_how.replace('-', '_')}"] = Impure(f"impure-{_how}", how=_how)
