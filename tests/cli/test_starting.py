"""How the program starts: the garbage collector waits, and then works as ever."""

from __future__ import annotations

import gc

import pytest
from fencepost.core.cli import garbage as collector


@pytest.fixture(autouse=True)
def as_a_new_process() -> None:
    """No command of another test has left the collector waiting."""
    gc.collect()
    assert gc.get_threshold() == collector.USUAL


def test_the_first_collection_is_put_off_and_then_all_is_as_before() -> None:
    collector.wait_while_starting()
    collector.wait_while_starting()
    assert gc.isenabled()
    assert gc.get_threshold()[0] == collector.FIRST
    before = len(gc.callbacks)
    gc.collect()
    assert gc.get_threshold() == collector.USUAL
    assert len(gc.callbacks) == before - 1


def test_garbage_is_collected_however_long_a_command_runs() -> None:
    collector.wait_while_starting()
    for _ in range(collector.FIRST + 1):
        knot: list[object] = []
        knot.append(knot)
    assert gc.get_threshold() == collector.USUAL


def test_a_following_worker_never_looks_through_what_its_start_has_made() -> None:
    knot: list[object] = []
    knot.append(knot)
    try:
        collector.keep_what_start_has_made()
        assert gc.get_freeze_count() > 0
        assert not any(one is knot for one in gc.get_objects())
    finally:
        gc.unfreeze()
    assert any(one is knot for one in gc.get_objects())
