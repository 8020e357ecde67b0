"""Faults as authors make them, each beside its sound twin, which differs from it in the mended place alone."""

import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from fencepost.plugins import (
    Applied,
    EffectInfo,
    EffectRequest,
    Hold,
    LeaseLost,
    NotApplied,
    Reconciled,
    Reject,
    Retry,
    Setting,
    Unknown,
    hookimpl,
)
from good import WORLD, open_world


@dataclass
class OnWorld:
    """An effect on the world's database. ``sound`` is the twin that has no fault."""

    name: str
    sound: bool
    delivery: str = "keyed"
    path: str = ""

    @hookimpl
    def effect_info(self) -> EffectInfo:
        key = "the column key" if self.delivery == "keyed" else None
        return EffectInfo(
            name=self.name, summary="s", delivery=self.delivery, receiver_key=key, settings=self.settings()
        )

    def settings(self) -> dict[str, Setting]:
        return dict(WORLD)

    @hookimpl
    def effect_configure(self, settings: dict[str, Any]) -> None:
        self.path = settings["world"]

    def send(self, key: str, answer: str = "done") -> str:
        """A receiver that keeps the key in the transaction of the work, and replays."""
        world = open_world(self.path)
        try:
            world.execute("begin immediate")
            known = world.execute("select answer from keyed where key = ?", [key]).fetchone()
            if known is None:
                known = [answer]
                world.execute("insert into keyed values (?, ?)", [key, answer])
                world.execute("insert into done values (?)", [key])
            world.execute("commit")
        finally:
            world.close()
        return str(known[0])

    def charge(self) -> None:
        """A receiver that recognises nothing."""
        world = open_world(self.path)
        try:
            world.execute("insert into done values ('x')")
        finally:
            world.close()

    def booked(self, key: str) -> bool:
        """Whether the receiver knows the key."""
        world = open_world(self.path)
        try:
            return world.execute("select 1 from keyed where key = ?", [key]).fetchone() is not None
        finally:
            world.close()


class Heartbeats(OnWorld):
    """Swallows LeaseLost, and goes on."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            request.heartbeat()
        except LeaseLost:
            if self.sound:
                raise
        return {"answer": self.send(request.idempotency_key)}


class OnTimeOut(OnWorld):
    """Says that it has succeeded when the receiver has not answered in time."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            answer = self.send(request.idempotency_key)
        except TimeoutError as error:
            if self.sound:
                raise Retry("the receiver has not answered") from error
            answer = "sent"
        return {"answer": answer}


class Marked(OnWorld):
    """The same, where the author's own mark is the only place that fails."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            request.mark("before the call")
        except TimeoutError:
            if self.sound:
                raise
            return {"answer": "sent"}
        return {"answer": self.send(request.idempotency_key)}


class CatchesAll(OnWorld):
    """Takes whatever happens for a success."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            self.charge()
        except BaseException:
            if self.sound:
                raise
            return {}
        return {}


class RejectsTimeOut(OnWorld):
    """Buries a job whose receiver has not answered."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            return {"answer": self.send(request.idempotency_key)}
        except TimeoutError as error:
            raise (Retry("later") if self.sound else Reject("no answer")) from error


@dataclass
class Remembers(OnWorld):
    """Keeps one job's answer in memory and gives it to the next one."""

    answer: str | None = None

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        if self.sound or self.answer is None:
            self.answer = self.send(request.idempotency_key)
        return {"answer": self.answer}


@dataclass
class MixesUp(OnWorld):
    """Returns the first job's answer for the second, though it has sent both."""

    answers: list[str] = field(default_factory=list)

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        answer = self.send(request.idempotency_key, answer=f"order {request.id}")
        self.answers.append(answer)
        return {"answer": answer if self.sound else self.answers[0]}


@dataclass
class SharesTheKey(OnWorld):
    """Keeps the key of the attempt on the object, which all threads share."""

    key: str = ""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        key = self.key = request.idempotency_key
        return {"answer": self.send(key if self.sound else self.key)}


class KeyOfTheId(OnWorld):
    """Sends a key that is made of the job's id alone."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        return {"answer": self.send(request.idempotency_key if self.sound else f"job-{request.id}")}


class Charges(OnWorld):
    """Tries a charge again whose answer did not come."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            self.charge()
        except TimeoutError as error:
            raise (Hold("nobody knows") if self.sound else Retry("no answer")) from error
        return {}


class ChecksThenInserts(OnWorld):
    """Looks, and inserts later, in two transactions."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        if self.sound:
            return {"answer": self.send(request.idempotency_key)}
        if not self.booked(request.idempotency_key):
            world = open_world(self.path)
            world.execute("insert or ignore into keyed values (?, 'done')", [request.idempotency_key])
            world.execute("insert into done values (?)", [request.idempotency_key])
            world.close()
        return {"answer": "done"}


class FirstAttempt(OnWorld):
    """Takes attempt 1 for the first one; after a redrive it is not."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        if self.sound:
            return {"answer": self.send(request.idempotency_key)}
        world = open_world(self.path)
        world.execute("begin immediate")
        if request.attempt == 1 or not self.booked(request.idempotency_key):
            world.execute("insert or ignore into keyed values (?, 'done')", [request.idempotency_key])
            world.execute("insert into done values (?)", [request.idempotency_key])
        world.execute("commit")
        return {"answer": "done"}


class StopsSilently(OnWorld):
    """Returns when the lease is gone, as if it had done its work."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        if request.lost.is_set():
            if self.sound:
                raise LeaseLost("another attempt goes on from here")
            return {"answer": "done"}
        return {"answer": self.send(request.idempotency_key)}


class InTheBackground(OnWorld):
    """Returns while a thread still works."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        thread = threading.Thread(target=self._send_later, args=[request.idempotency_key])
        thread.start()
        if self.sound:
            thread.join()
        return {"answer": "done"}

    def _send_later(self, key: str) -> None:
        time.sleep(0.3)  # no machine is so busy that the worker is not killed first
        self.send(key)


@dataclass
class Asks(OnWorld):
    """Takes a question that failed for a no; its receiver refuses nothing."""

    delivery: str = "probed"

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        world = open_world(self.path)
        try:
            world.execute("begin immediate")
            world.execute("insert or ignore into keyed values (?, 'done')", [request.idempotency_key])
            if not self.sound or world.execute("select changes()").fetchone()[0]:
                world.execute("insert into done values (?)", [request.idempotency_key])
            world.execute("commit")
        finally:
            world.close()
        return {"answer": "done"}

    @hookimpl
    def effect_reconcile(self, request: EffectRequest) -> Reconciled:
        try:
            return Applied({"answer": "done"}) if self.booked(request.idempotency_key) else NotApplied()
        except TimeoutError:
            return Unknown("no answer") if self.sound else NotApplied()


class OverHttp(OnWorld):
    """Takes a network that fails for a success; no mark, and an error of its library's own."""

    def settings(self) -> dict[str, Setting]:
        return {"world": Setting("The receiver's URL.", required=True)}

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        post = urllib.request.Request(
            self.path, method="POST", headers={"Key": request.idempotency_key}, data=b"x"
        )
        try:
            with urllib.request.urlopen(post, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.URLError as error:
            if self.sound:
                raise Retry(f"no answer: {error.reason}") from error
            return {"answer": "done"}


class Varies(OnWorld):
    """Does its work once, and says another instant each time; that is no fault of a local effect."""

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        self.send(request.idempotency_key)
        return {"at": time.monotonic_ns()}


class OwnTimeOut(Exception):
    """How this provider's library says that it has waited in vain."""


class OwnErrors(OnWorld):
    """Tries a charge again after the provider's own kind of time-out."""

    def call(self) -> None:
        """The provider's library, which raises what it raises somewhere far inside of itself."""
        self.charge()

    @hookimpl
    def effect_apply(self, request: EffectRequest) -> dict[str, Any]:
        try:
            self.call()
        except OwnTimeOut as error:
            raise (Hold("nobody knows") if self.sound else Retry("later")) from error
        return {}


KINDS: dict[str, tuple[type[OnWorld], str]] = {
    "heartbeats": (Heartbeats, "keyed"),
    "on-time-out": (OnTimeOut, "keyed"),
    "marked": (Marked, "keyed"),
    "catches-all": (CatchesAll, "once"),
    "rejects-time-out": (RejectsTimeOut, "keyed"),
    "remembers": (Remembers, "keyed"),
    "mixes-up": (MixesUp, "keyed"),
    "shares-the-key": (SharesTheKey, "keyed"),
    "key-of-the-id": (KeyOfTheId, "keyed"),
    "charges": (Charges, "once"),
    "checks-then-inserts": (ChecksThenInserts, "local"),
    "first-attempt": (FirstAttempt, "local"),
    "stops-silently": (StopsSilently, "keyed"),
    "in-the-background": (InTheBackground, "keyed"),
    "asks": (Asks, "probed"),
    "over-http": (OverHttp, "keyed"),
    "varies": (Varies, "local"),
    "own-errors": (OwnErrors, "once"),
}
for _name, (_kind, _delivery) in KINDS.items():
    for _sound in (False, True):
        _full = f"{'sound' if _sound else 'faulty'}-{_name}"
        globals()[_full.replace("-", "_")] = _kind(name=_full, sound=_sound, delivery=_delivery)


# -- Middleware around whatever effect there is --


@dataclass
class Around:
    """A wrapper, with or without a fault."""

    how: str

    @hookimpl(wrapper=True)
    def effect_apply(self) -> Any:
        try:
            return (yield)
        except TimeoutError as error:
            if self.how == "swallows":
                return {}
            if self.how == "retries":
                raise Retry(f"later: {error}", after_s=1) from error
            if self.how == "hides":
                raise RuntimeError("something went wrong") from None
            error.add_note("seen on its way")
            raise


for _how in ("swallows", "retries", "hides", "notes"):
    globals()[f"around_{_how}"] = Around(_how)
