"""The crash kit over ``remote`` and the receiver that ships: every point of an attempt, counted at the receiver."""

from fencepost.plugins.testing import EffectCase


def test_remote_keeps_its_promise_at_every_point(world, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    kit = tmp_path / "kit"
    kit.mkdir()
    case = EffectCase("remote", kit, settings={"url": world.receiver()}, observed=world.done)
    results = case.check()
    assert {result.state for result in results} == {"completed"}
    seen = {result.point: result.seen for result in results}
    assert seen.pop("two-jobs") == seen.pop("other-namespace") == 2
    assert set(seen.values()) == {1}
    assert {"in-effect:before-send", "in-effect:after-send", "stale-after", "two-at-once"} <= {
        result.point for result in results
    }
