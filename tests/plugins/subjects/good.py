"""Effects that keep their promise, one of each delivery, and the world that they act on: a folder or a database."""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.plugins import (
    Applied,
    EffectInfo,
    EffectRequest,
    NotApplied,
    Reconciled,
    Retry,
    Setting,
    hookimpl,
)

WORLD = {"world": Setting("The database that stands for the outside world.", required=True)}


def open_world(path: str) -> sqlite3.Connection:
    """The outside world: what was done, with the key that came with it."""
    world = sqlite3.connect(path, isolation_level=None)
    world.execute("create table if not exists keyed (key text primary key, answer text)")
    world.execute("create table if not exists done (key text)")
    return world


def count_done(path: Path) -> int:
    """How often the world saw an effect."""
    world = open_world(str(path))
    try:
        return int(world.execute("select count(*) from done").fetchone()[0])
    finally:
        world.close()


@dataclass
class Pure:
    """Depends on its text alone."""

    name: str = "good-pure"

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name=self.name, summary="Reverses the text.")

    @hookimpl
    def effect_outcome(self, text: str) -> dict[str, Any]:
        return {"reversed": text[::-1]}


@dataclass
class LocalFile:
    """Writes a file that is named by the key: again and again the same one."""

    folder: str = ""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            name="good-local", summary="s", settings={"folder": Setting("Where.", required=True)}
        )

    @hookimpl
    def effect_configure(self, settings: dict[str, Any]) -> None:
        self.folder = settings["folder"]

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        final = Path(self.folder, f"{request.idempotency_key}.txt")
        half = final.with_suffix(f".{os.getpid()}.part")
        half.write_text(request.text[:3])
        request.mark("half written")
        half.write_text(request.text)
        request.mark("written")
        half.replace(final)
        return {"file": final.name}


@dataclass
class ToWorld:
    """Shared by the effects on the database."""

    path: str = ""

    @hookimpl
    def effect_configure(self, settings: dict[str, Any]) -> None:
        self.path = settings["world"]


class Keyed(ToWorld):
    """The receiver keeps the key with the work and replays its answer."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(
            name="good-keyed", summary="s", delivery="keyed", receiver_key="the column key", settings=WORLD
        )

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        world = open_world(self.path)
        world.execute("begin immediate")
        known = world.execute("select answer from keyed where key = ?", [request.idempotency_key]).fetchone()
        if known is None:
            known = [f"done under fence {request.fence}"]
            world.execute("insert into keyed values (?, ?)", [request.idempotency_key, known[0]])
            world.execute("insert into done values (?)", [request.idempotency_key])
        request.mark("not yet committed")
        world.execute("commit")
        request.mark("committed")
        return {"answer": known[0]}


class Probed(ToWorld):
    """The receiver refuses a key that it knows, and can be asked."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name="good-probed", summary="s", delivery="probed", settings=WORLD)

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        world = open_world(self.path)
        try:
            world.execute("begin immediate")
            world.execute("insert into keyed values (?, 'booked')", [request.idempotency_key])
            world.execute("insert into done values (?)", [request.idempotency_key])
            world.execute("commit")
        except sqlite3.IntegrityError as error:
            raise Retry("the receiver knows the key: it is asked next") from error
        request.mark("sent")
        return {"answer": "booked"}

    @hookimpl
    def effect_reconcile(self, request: EffectRequest) -> Reconciled:
        known = open_world(self.path).execute(
            "select answer from keyed where key = ?", [request.idempotency_key]
        )
        row = known.fetchone()
        return NotApplied() if row is None else Applied({"answer": row[0]})


class Once(ToWorld):
    """Nobody can tell afterwards; so it is never tried again."""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        return EffectInfo(name="good-once", summary="s", delivery="once", settings=WORLD)

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        open_world(self.path).execute("insert into done values ('x')")
        request.mark("sent")
        return {}


pure, local, keyed, probed, once = Pure(), LocalFile(), Keyed(), Probed(), Once()
