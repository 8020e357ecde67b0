"""The crash kit: it passes effects that keep their promise, and finds each planted fault by name."""

import pytest
from fencepost.plugins.testing import (
    POINTS,
    CrashKitError,
    EffectCase,
    make_request,
)
from fencepost.plugins.testing.points import Stop
from fencepost.plugins.testing.processes import WorkerHost
from fencepost.plugins.testing.scenarios import Scenario

DELIVERIES = ("pure", "local", "keyed", "probed", "once")


@pytest.fixture
def subject(tmp_path, monkeypatch):
    """Makes the case of one of the effects in subjects/, with a world of its own."""
    from pathlib import Path

    subjects = Path(__file__).parent / "subjects"
    monkeypatch.syspath_prepend(subjects)  # as pytest does with the folder of a test
    import good

    world, folder, kit = tmp_path / "world.db", tmp_path / "files", tmp_path / "kit"
    folder.mkdir()
    kit.mkdir()

    def make(effect, module="good", **options):
        name = effect.removeprefix("good-")
        options.setdefault("settings", {"world": str(world)})
        options.setdefault("observed", lambda: good.count_done(world))
        return EffectCase(effect, kit, plugins=[f"{module}:{name.replace('-', '_')}"], **options)

    def files(pattern):
        return {
            "settings": {"folder": str(folder)},
            "observed": lambda: sum(path.read_text().count("hello") for path in folder.glob(pattern)),
        }

    make.files = files
    return make


def play(case, point, tmp_path):
    """One row as the kit plays it, before it is judged."""
    with WorkerHost() as host:
        scenario = Scenario(host, case.subject(), id="a", store=str(tmp_path / "jobs"))
        if point == "redelivery":
            return scenario.delivered_again()
        return scenario.silent(Stop(POINTS[point].where, POINTS[point].how))


def options_for(subject, delivery):
    if delivery == "pure":
        return {"settings": {}, "observed": None}
    return subject.files("*.txt") if delivery == "local" else {}


# -- Effects that keep their promise --


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_an_effect_that_keeps_its_promise_passes_every_point(subject, delivery):
    results = subject(f"good-{delivery}", **options_for(subject, delivery)).check()
    names = [result.point.partition(":")[0] for result in results]
    concerned = {
        "pure": ("all", "pure"),
        "local": ("all", "acting", "repeated"),
        "keyed": ("all", "acting", "repeated", "receiver"),
        "probed": ("all", "acting", "repeated", "receiver", "probed"),
        "once": ("all", "acting"),
    }[delivery]
    assert list(dict.fromkeys(names)) == [
        name for name, point in POINTS.items() if point.concerns in concerned
    ]
    if delivery in ("local", "keyed", "probed"):
        assert {result.state for result in results} == {"completed"}
        assert {(result.point, result.seen) for result in results if result.seen != 1} <= {
            ("two-jobs", 2),
            ("other-namespace", 2),
        }


def test_marks_inside_an_effect_are_points_of_their_own(subject):
    results = subject("good-local", **subject.files("*.txt")).results("in-effect")
    assert [result.point for result in results] == ["in-effect:half written", "in-effect:written"]


def test_the_jobs_may_live_in_sqlite(subject):
    case = subject("good-keyed", ledger="sqlite")
    assert [result.seen for result in case.check("after-effect", "stale-after")] == [1, 1]


def test_a_once_effect_is_held_where_nobody_knows_and_never_repeated(subject):
    results = {
        result.point: result for result in subject("good-once").results("before-effect", "after-effect")
    }
    assert (results["before-effect"].state, results["before-effect"].seen) == ("held", 0)
    assert (results["after-effect"].state, results["after-effect"].seen) == ("held", 1)


# -- Planted faults --


@pytest.mark.parametrize(
    ("effect", "point", "says"),
    [
        (
            "key-with-attempt",
            "after-effect",
            "saw it twice instead of once. Send request.idempotency_key as it is in",
        ),
        ("key-with-attempt", "stale-after", "nothing that contains the attempt"),
        ("no-replay", "after-effect", "return what the receiver stored for the key"),
        (
            "says-no",
            "after-effect",
            "twice instead of once. effect_reconcile said NotApplied although it was applied",
        ),
        ("says-no", "timed-out", "effect_reconcile said NotApplied although it was applied"),
        ("says-yes", "before-effect", "never saw it. effect_reconcile said Applied although nothing was"),
        ("never-knows", "before-effect", "effect_reconcile could only say Unknown"),
        (
            "racy",
            "two-at-once",
            "NotApplied() promises that no earlier request can still arrive, and one did",
        ),
        ("holds", "after-effect", "the job ended held, not completed (this looks familiar)"),
    ],
)
def test_a_fault_is_found_at_its_point_with_the_remedy(subject, effect, point, says):
    with pytest.raises(CrashKitError) as found:
        subject(effect, "faulty").check(point)
    assert f"the effect {effect!r} does not keep its promise" in str(found.value)
    assert f"\n\n{POINTS[point].says}: " in str(found.value)
    assert says in str(found.value)


@pytest.mark.parametrize("point", ["in-effect", "after-effect", "stale-after", "two-at-once", "timed-out"])
def test_an_effect_that_applies_before_it_records_and_says_local_is_found(subject, point):
    with pytest.raises(CrashKitError, match="Delivery 'local' promises that repeating is harmless") as found:
        subject("appends", "faulty", **subject.files("log.txt")).check(point)
    assert "twice instead of once" in str(found.value)


def test_an_effect_that_returns_before_its_work_is_durable_is_found(subject):
    with pytest.raises(CrashKitError, match=r"never saw it\. Return only when the work is durable"):
        subject("buffers", "faulty", **subject.files("log.txt")).check("after-receipt")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("time", "at another time it got another outcome"),
        ("date", "at another time it got another outcome"),
        ("random", "it depends on chance"),
        ("counter", "one process got two outcomes"),
        ("set-order", "the order of a set"),
        ("process", "two processes got two outcomes"),
        ("write", "it touched the outside world (it opened /dev/null for writing)"),
        ("network", "it touched the outside world (socket.connect"),
    ],
)
def test_a_pure_effect_that_is_not_pure_is_found(subject, how, says):
    with pytest.raises(CrashKitError) as found:
        subject(f"impure-{how}", "faulty", settings={}, observed=None).check("pure")
    assert says in str(found.value)
    assert "implement effect_apply" in str(found.value)


def test_a_pure_effect_that_answers_otherwise_is_found_by_its_receipt_too(subject):
    with pytest.raises(CrashKitError, match="did not give the same outcome again"):
        subject("impure-process", "faulty", settings={}, observed=None).check("after-receipt")


def test_a_receiver_that_cannot_say_for_a_while_is_asked_again_and_nothing_is_applied(subject, tmp_path):
    played = play(subject("good-probed"), "reconcile-unknown", tmp_path)
    assert played.answers() == ["Unknown", "Applied"]
    assert (len(played.outcomes()), played.seen, played.state) == (1, 1, "completed")


def test_a_job_that_is_delivered_again_meets_a_worker_again(subject, tmp_path):
    played = play(subject("good-keyed"), "redelivery", tmp_path)
    assert sum("worker" in report for report in played.reports) == 2
    assert (len(played.outcomes()), played.seen) == (1, 1)


def test_a_world_that_forgets_is_no_proof(subject):
    counts = iter([5, 3])
    with pytest.raises(CrashKitError, match=r"observed\(\) went down by 2"):
        subject("good-keyed", observed=lambda: next(counts)).check("after-claim")


def test_a_pure_effect_that_the_world_saw_is_found(subject):
    counts = iter([0, 1])
    with pytest.raises(CrashKitError, match="the outside world saw something of a pure effect"):
        subject("good-pure", settings={}, observed=lambda: next(counts)).check("undisturbed")


# -- What the author must give --


def test_an_acting_effect_needs_eyes_outside(subject):
    with pytest.raises(TypeError, match="give observed=, which counts how often the outside world saw it"):
        subject("good-keyed", observed=None)


@pytest.mark.parametrize(
    ("count", "says"), [(lambda: 0, "observed() counted nothing"), (lambda: None, "returned None")]
)
def test_eyes_that_see_nothing_are_not_taken_for_a_proof(subject, count, says):
    with pytest.raises(CrashKitError) as found:
        subject("good-keyed", observed=count).check("undisturbed")
    assert says in str(found.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"settings": {}}, "needs the setting world"),
        ({"settings": {"wrold": "x"}}, "has no setting 'wrold'"),
    ],
)
def test_a_case_that_cannot_be_played_fails_and_says_why(subject, options, says):
    with pytest.raises(CrashKitError, match="it could not be played: ") as found:
        subject("good-keyed", **options).check("undisturbed")
    assert says in str(found.value)


def test_a_row_may_fail_only_with_a_reason(subject):
    case = subject(
        "racy", "faulty", accept={"two-at-once": "the bank takes ten milliseconds, leases are an hour"}
    )
    [result] = case.check("two-at-once")
    assert result.failure
    assert result.accepted == "the bank takes ten milliseconds, leases are an hour"
    with pytest.raises(CrashKitError):
        subject("racy", "faulty", accept={"timed-out": "no reason for the other"}).check("two-at-once")


def test_a_point_that_there_is_not_is_an_error_of_the_test(subject):
    with pytest.raises(ValueError, match="there is no point 'after-lunch'; there are undisturbed, "):
        subject("good-keyed").check("after-lunch")
    with pytest.raises(ValueError, match="there is no point 'after-lunch'"):
        subject("good-keyed", accept={"after-lunch": "?"})


def test_a_world_in_which_jobs_hide_one_another_can_be_reset(subject):
    resets = []
    subject("good-keyed", reset=lambda: resets.append(1)).check("undisturbed", "after-claim")
    assert len(resets) == 2


def test_an_effect_can_be_called_directly_with_a_request():
    request = make_request('{"a": 1}', effect="x", attempt=2, fence=7)
    assert (request.json(), request.attempt, request.fence) == ({"a": 1}, 2, 7)
    assert request.idempotency_key.startswith("fp1-")
    assert request.idempotency_key == make_request('{"a": 1}', effect="x").idempotency_key
    assert 0 < request.remaining_s() <= 30
    request.mark("nobody listens")
    request.heartbeat()
