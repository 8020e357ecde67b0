"""How an attempt's error is described: what a person needs of it, within what a ledger keeps."""

from __future__ import annotations

import pluggy
import pytest
from fencepost.core.model.documents import parse
from fencepost.core.worker.attempt import describe

hook, implementation = pluggy.HookspecMarker("letters"), pluggy.HookimplMarker("letters")


class Hooks:
    @hook
    def send(self, depth: int) -> None: ...


class Letters:
    @implementation
    def send(self, depth: int) -> None:
        if depth:
            self.send(depth - 1)
        raise ConnectionError("the post office is closed")


def raised(depth: int = 0) -> str:
    """The description of an error that came through pluggy from an effect."""
    manager = pluggy.PluginManager("letters")
    manager.add_hookspecs(Hooks)
    manager.register(Letters())
    try:
        manager.hook.send(depth=depth)
    except ConnectionError as error:
        return describe(error)
    raise AssertionError("it raises")


def test_a_traceback_starts_with_the_frame_that_raised() -> None:
    head, _, title, first, line, *_ = raised().splitlines()
    assert (head, title) == (
        "ConnectionError: the post office is closed",
        "Traceback (innermost first):",
    )
    assert first.endswith("in send")
    assert line.strip() == 'raise ConnectionError("the post office is closed")'


def test_a_traceback_leaves_out_the_frames_between_the_worker_and_the_effect() -> None:
    assert "pluggy" not in raised()


def test_a_traceback_is_cut_at_its_outer_end() -> None:
    said = raised(depth=50)
    assert "raise ConnectionError" in said.splitlines()[4]
    assert "in raised" not in said
    assert "in raised" in raised(depth=1)


def test_a_fault_of_our_own_keeps_its_frames() -> None:
    with pytest.raises(TypeError) as caught:
        parse(None, what="nothing")  # type: ignore[arg-type]
    assert "documents.py" in describe(caught.value.with_traceback(caught.tb.tb_next))
