"""The files of a directory ledger: what they look like, what is refused, and that refusing changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import (
    ClaimRequest,
    InvalidInput,
    JobQuery,
    LedgerBusy,
    LedgerCorrupt,
    LedgerFailed,
    LedgerReplaced,
    LimitExceeded,
    NewJob,
    Receipt,
    Schedule,
    Unsupported,
    open_ledger,
)
from fencepost.core.ledgers.directory import DirectoryLedger

from tests.programs import python, refused

PLAIN = {"ID": "a", "State": "queued", "Version": 0, "LeaseUntil": 0, "Attempts": 0}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with DirectoryLedger(path) as ledger:
        ledger.enqueue([NewJob("a", "x")])
    return path


def rows(store: Path) -> Any:
    return json.loads((store / "jobs.json").read_text("utf-8"))


def write_rows(store: Path, *found: dict[str, Any]) -> None:
    (store / "jobs.json").write_text(json.dumps(found), "utf-8")


def claim(ledger: DirectoryLedger, now_ms: int, **options: Any) -> list[str]:
    request = ClaimRequest("w", lease_ms=10, **({"max_attempts": 3, "limit": 100} | options))
    claimed = ledger.claim(request, now_ms=now_ms)
    return [job.id for job in claimed]


# -- the layout --


def test_jobs_json_is_an_array_indented_by_two_with_a_newline_at_its_end(store: Path) -> None:
    assert (store / "jobs.json").read_text("utf-8") == json.dumps([PLAIN], indent=2) + "\n"


def test_a_plain_job_has_exactly_the_five_fields_through_claim_reclaim_and_complete(store: Path) -> None:
    with DirectoryLedger(store) as ledger:
        assert claim(ledger, 100) == ["a"]
        assert rows(store) == [PLAIN | {"State": "running", "Version": 1, "LeaseUntil": 110, "Attempts": 1}]
        assert claim(ledger, 110, effects=("other",)) == []
        assert claim(ledger, 110) == ["a"]
        assert ledger.complete("a", 3, now_ms=111)
    assert rows(store) == [PLAIN | {"State": "completed", "Version": 3, "Attempts": 2}]


def test_dead_and_held_jobs_say_why_and_since_when(store: Path) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.enqueue([NewJob("b", "y")])
        claim(ledger, 100)
        ledger.fail("a", 1, error="no use", now_ms=101)
        ledger.hold("b", 1, error="look", now_ms=101)
    dead, held = rows(store)
    assert dead == PLAIN | {
        "State": "dead",
        "Version": 2,
        "Attempts": 1,
        "LastError": "no use",
        "DiedAt": 101,
    }
    assert held == PLAIN | {"ID": "b", "State": "held", "Version": 2, "Attempts": 1, "LastError": "look"}


def test_first_claimed_at_is_kept_for_jobs_of_another_effect_only(store: Path) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.enqueue([NewJob("b", "y", effect="other")])
        claim(ledger, 100)
    assert "FirstClaimedAt" not in rows(store)[0]
    assert rows(store)[1]["FirstClaimedAt"] == 100


def test_a_purged_id_stays_as_a_row_of_the_five_and_moves_to_the_end_when_it_is_made_anew(
    store: Path,
) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.enqueue([NewJob("b", "y")])
        ledger.cancel("a", now_ms=5)
        assert ledger.purge("a", now_ms=6)
        purged = PLAIN | {"State": "purged", "Version": 1}
        assert rows(store)[0] == purged
        assert ledger.get_job("a") is None
        ledger.enqueue([NewJob("a", "x")])
    assert [row["ID"] for row in rows(store)] == ["b", "a"]
    assert rows(store)[1] == PLAIN | {"Version": 2}


def test_an_error_is_kept_up_to_1_kib_cut_between_characters(store: Path) -> None:
    with DirectoryLedger(store) as ledger:
        claim(ledger, 100)
        ledger.fail("a", 1, error="é" * 600 + "\0", now_ms=101)
    assert rows(store)[0]["LastError"] == "é" * 512


def test_folders_are_0700_and_files_0600_whatever_the_umask(tmp_path: Path) -> None:
    store = tmp_path / "store"
    before = os.umask(0)
    try:
        with DirectoryLedger(store) as ledger:
            ledger.enqueue([NewJob("a", "x")])
            ledger.publish(Receipt("a", "00", {}))
            ledger.cancel("a")
    finally:
        os.umask(before)
    found = {
        str(path.relative_to(tmp_path)): oct(path.stat().st_mode & 0o777)
        for path in (store, *store.rglob("*"))
    }
    assert found == {
        "store": "0o700",
        "store/inputs": "0o700",
        "store/effects": "0o700",
        "store/ledger.lock": "0o600",
        "store/jobs.json": "0o600",
        "store/audit.jsonl": "0o600",
        "store/inputs/a.json": "0o600",
        "store/effects/a.json": "0o600",
    }


# -- carrying on what others wrote --


def test_queued_jobs_with_used_up_attempts_become_dead(store: Path) -> None:
    write_rows(store, PLAIN | {"Attempts": 3, "Version": 9})
    with DirectoryLedger(store) as ledger:
        assert claim(ledger, 100) == []
    assert rows(store) == [
        PLAIN
        | {"State": "dead", "Attempts": 3, "Version": 10, "LastError": "max attempts exceeded", "DiedAt": 100}
    ]


def test_a_change_by_another_program_is_seen(store: Path) -> None:
    with DirectoryLedger(store) as mine, DirectoryLedger(store) as others:
        assert mine.counts()["queued"] == 1
        others.enqueue([NewJob("b", "y")])
        assert mine.counts()["queued"] == 2
        (store / "new").write_text(json.dumps([PLAIN | {"State": "completed"}]))
        os.replace(store / "new", store / "jobs.json")
        assert mine.counts() == {"queued": 0, "running": 0, "completed": 1, "dead": 0, "held": 0}


def test_leftovers_are_ignored_and_removed_once_they_are_old(store: Path) -> None:
    young, old = store / "inputs" / ".young.tmp", store / ".jobs.json.1.dead"
    for path in (young, old):
        path.write_bytes(b"half a docu")
    os.utime(old, (time.time() - 7_200,) * 2)
    with DirectoryLedger(store) as ledger:
        assert [job.id for job in ledger.jobs().jobs] == ["a"]
        assert ledger.export_rows().rows[0].id == "a"
    assert young.exists()
    assert not old.exists()


# -- refusing --

BROKEN = (
    {
        "truncated": b"[{",
        "empty": b"",
        "two documents": b"[] []",
        "an object": b"{}",
        "not UTF-8": b"[\xff]",
        "a BOM": b"\xef\xbb\xbf[]",
        "NaN": b"[NaN]",
        "a key twice": b'[{"ID":"a","ID":"a","State":"queued","Version":0,"LeaseUntil":0,"Attempts":0}]',
        "too large": b"[" + b" " * 4_194_303 + b"]",
    }
    | {
        name: json.dumps([row]).encode()
        for name, row in {
            "an unknown field": PLAIN | {"Colour": 1},
            "an unknown state": PLAIN | {"State": "paused"},
            "no state": {key: value for key, value in PLAIN.items() if key != "State"},
            "a state that is no string": PLAIN | {"State": ["queued"]},
            "a negative version": PLAIN | {"Version": -1},
            "a negative lease": PLAIN | {"LeaseUntil": -1},
            "a negative attempt": PLAIN | {"Attempts": -1},
            "a fraction": PLAIN | {"Version": 1.0},
            "a boolean": PLAIN | {"Attempts": True},
            "a bad id": PLAIN | {"ID": "../a"},
            "a bad queue": PLAIN | {"Queue": "No"},
            "a priority that is too large": PLAIN | {"Priority": 2**31},
            "a limit of none": PLAIN | {"MaxAttempts": 0},
            "an error that is no string": PLAIN | {"State": "dead", "LastError": 3},
            "a purged id with options": PLAIN | {"State": "purged", "Queue": "q"},
            "null": PLAIN | {"RunAt": None},
        }.items()
    }
    | {"an id twice": json.dumps([PLAIN, PLAIN]).encode()}
)


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_jobs_json_that_cannot_be_read_is_refused_and_left_byte_for_byte(store: Path, data: bytes) -> None:
    (store / "jobs.json").write_bytes(data)
    with DirectoryLedger(store) as ledger:
        for verb in (
            ledger.counts,
            ledger.jobs,
            ledger.sweep_expired,
            lambda: ledger.enqueue([NewJob("b", "y")]),
            lambda: claim(ledger, 1),
            lambda: ledger.complete("a", 1),
            lambda: ledger.cancel("a"),
        ):
            with pytest.raises(LedgerCorrupt, match=r"jobs\.json.*left as it is.*restore it from a copy"):
                verb()
    assert (store / "jobs.json").read_bytes() == data
    assert not (store / "inputs" / "b.json").exists()


def test_jobs_json_may_have_4_mib_exactly(store: Path) -> None:
    data = json.dumps([PLAIN]).encode()
    (store / "jobs.json").write_bytes(data + b" " * (4_194_304 - len(data)))
    with DirectoryLedger(store) as ledger:
        assert claim(ledger, 1) == ["a"]


@pytest.mark.parametrize(
    "place", ["jobs.json", "inputs/a.json", "effects/a.json", "ledger.lock", "audit.jsonl"]
)
@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "fifo"])
def test_what_is_no_plain_file_is_refused_and_left(
    store: Path, tmp_path: Path, place: str, kind: str
) -> None:
    path, elsewhere = store / place, tmp_path / "elsewhere"
    elsewhere.write_text("[]")
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere if kind == "link" else tmp_path / "nowhere")
    with DirectoryLedger(store) as ledger:

        def touch_every_file() -> None:
            ledger.receipts(["a"])
            ledger.read_inputs(["a"])
            ledger.cancel("a")

        with pytest.raises((LedgerCorrupt, LedgerFailed)) as refused:
            touch_every_file()
    assert str(path) in str(refused.value)
    assert elsewhere.read_text() == "[]"
    assert not (tmp_path / "nowhere").exists()
    assert path.is_symlink() == ("link" in kind)


@pytest.mark.parametrize("folder", ["inputs", "effects"])
def test_a_link_in_the_place_of_a_folder_is_refused(store: Path, tmp_path: Path, folder: str) -> None:
    (store / folder).rename(tmp_path / "moved")
    (store / folder).symlink_to(tmp_path / "moved")
    with pytest.raises(LedgerCorrupt, match=str(store)):
        DirectoryLedger(store)


@pytest.mark.parametrize(
    "data", [b"{", b"{}", b'{"id":"b","text":"x"}', b'{"id":"a","text":"x","y":1}', b'{"id":"a"}']
)
def test_an_altered_input_is_refused_and_left(store: Path, data: bytes) -> None:
    (store / "inputs" / "a.json").write_bytes(data)
    with DirectoryLedger(store) as ledger:
        with pytest.raises(LedgerCorrupt, match=r"inputs/a\.json"):
            ledger.read_inputs(["a"])
        with pytest.raises(LedgerCorrupt, match=r"inputs/a\.json"):
            ledger.enqueue([NewJob("a", "x")])
    assert (store / "inputs" / "a.json").read_bytes() == data


def test_ids_that_are_no_ids_never_become_paths(store: Path) -> None:
    (store / "secret.json").write_text('{"id":"a","text":"x"}')
    with DirectoryLedger(store) as ledger:
        for verb in (ledger.receipts, ledger.read_inputs):
            assert verb(["../secret"]) == {}
        with pytest.raises(InvalidInput, match="must match"):
            ledger.publish(Receipt("../secret", "00", {}))


def test_a_folder_that_was_exchanged_under_a_running_program_is_noticed(store: Path, tmp_path: Path) -> None:
    with DirectoryLedger(store) as ledger:
        store.rename(tmp_path / "moved")
        with DirectoryLedger(store) as fresh:
            fresh.enqueue([NewJob("b", "y")])
        with pytest.raises(LedgerReplaced, match="replaced by another one"):
            claim(ledger, 1)
    assert [row["ID"] for row in rows(store)] == ["b"]


@pytest.mark.parametrize("room", ["inputs", "effects"])
def test_a_back_up_that_was_put_in_place_under_a_running_program_is_noticed(
    store: Path, tmp_path: Path, room: str
) -> None:
    with DirectoryLedger(store) as ledger:
        ledger.enqueue([NewJob("b", "y")])
        shutil.copytree(store / room, tmp_path / "copy")
        shutil.rmtree(store / room)
        with pytest.raises(LedgerFailed, match=f"{room}: the folder was removed"):
            claim(ledger, 1)
        (tmp_path / "copy").rename(store / room)
        with pytest.raises(LedgerReplaced, match=f"{room}: the folder was replaced"):
            claim(ledger, 1)
    with DirectoryLedger(store) as ledger:
        claim(ledger, 1)


def test_a_joined_transaction_names_the_sql_ledgers(store: Path) -> None:
    with (
        open_ledger(store) as ledger,
        pytest.raises(Unsupported, match=r"SQL ledger \(|jobs\.db"),
    ):
        ledger.enqueue([NewJob("b", "y")], connection=object())


PLAIN_SCHEDULE = {"name": "beat", "every": "@every 1m", "text": "tick", "next_ms": 60_000}


def test_schedules_and_pauses_are_files_that_a_person_can_read(store: Path) -> None:
    with open_ledger(store) as ledger:
        ledger.register_schedule(Schedule("beat", "@every 1m", "tick"), now_ms=0)
        ledger.pause("mail", now_ms=0)
    assert json.loads((store / "schedules.json").read_text("utf-8")) == [PLAIN_SCHEDULE | {"since_ms": 0}]
    assert json.loads((store / "paused.json").read_text("utf-8")) == ["mail"]
    assert (store / "schedules.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "rows",
    [
        {},
        [5],
        [PLAIN_SCHEDULE, PLAIN_SCHEDULE],
        [PLAIN_SCHEDULE | {"colour": "red"}],
        [{"name": "beat"}],
        [PLAIN_SCHEDULE | {"next_ms": -1}],
        [PLAIN_SCHEDULE | {"paused": 1}],
        [PLAIN_SCHEDULE | {"stamps": {"colour": 1}}],
    ],
)
def test_a_file_of_schedules_that_is_broken_is_refused_and_left_as_it_is(store: Path, rows: object) -> None:
    text = json.dumps(rows)
    (store / "schedules.json").write_text(text, "utf-8")
    with open_ledger(store) as ledger, pytest.raises(LedgerCorrupt, match=r"schedules\.json"):
        ledger.tick(now_ms=60_000)
    assert (store / "schedules.json").read_text("utf-8") == text


def test_a_stored_schedule_that_is_not_understood_is_reported_by_name_and_the_others_fire(
    store: Path,
) -> None:
    rows = [PLAIN_SCHEDULE, PLAIN_SCHEDULE | {"name": "odd", "every": "when it rains"}]
    (store / "schedules.json").write_text(json.dumps(rows), "utf-8")
    with open_ledger(store) as ledger:
        good, odd = ledger.tick(now_ms=60_000)
        assert (good.id, good.created) == ("beat-60000", True)
        assert (odd.schedule, odd.created) == ("odd", False)
        assert odd.error is not None
        assert ledger.soonest() == 120_000


def test_a_file_of_pauses_that_is_broken_lets_nothing_be_claimed(store: Path) -> None:
    (store / "paused.json").write_text('{"mail": true}', "utf-8")
    with open_ledger(store) as ledger, pytest.raises(LedgerCorrupt, match=r"paused\.json"):
        ledger.claim(ClaimRequest("me", 1, 1), now_ms=0)


# -- size --


def test_an_enqueue_that_would_fill_the_file_is_refused_whole_and_names_the_way_on(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "inputs").mkdir(parents=True)
    with DirectoryLedger(store) as ledger:
        write_rows(store, *(PLAIN | {"ID": f"j-{n}"} for n in range(34_500)))
        assert ledger.sweep_expired(now_ms=1) is not None
        ledger.cancel("j-0", now_ms=1)
        free = 4_194_304 - 262_144 - (store / "jobs.json").stat().st_size
        fits = [NewJob(f"k-{n}", "", queue="q" * 64) for n in range(free // 190)]
        one_too_many = [*fits[1:], *(NewJob(f"m-{n}", "", queue="q" * 64) for n in range(20))]
        before = (store / "jobs.json").read_bytes()
        with pytest.raises(LimitExceeded, match=r"--store jobs\.db"):
            ledger.enqueue(one_too_many)
        assert (store / "jobs.json").read_bytes() == before
        assert not (store / "inputs" / "k-1.json").exists()
        assert all(item.created for item in ledger.enqueue(fits))
    assert (store / "jobs.json").stat().st_size <= 4_194_304 - 262_144


def test_moves_shorten_last_errors_and_never_fail_for_size(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "inputs").mkdir(parents=True)
    write_rows(store, *(PLAIN | {"ID": f"j-{n}"} for n in range(30_000)))
    with DirectoryLedger(store) as ledger:
        for now_ms in range(0, 16_000, 1_000):
            claimed = ledger.claim(
                ClaimRequest(claimant="w", lease_ms=10**6, max_attempts=1, limit=1_000), now_ms=now_ms
            )
            for job in claimed[:1]:
                assert ledger.fail(job.id, job.version, error="e" * 2_000, now_ms=now_ms)
            size = (store / "jobs.json").stat().st_size
            assert size <= 4_194_304
        running = ledger.jobs(JobQuery(states=["running"], limit=100_000)).jobs
        assert len(running) > 3_000
        for job in running[:10]:
            assert ledger.retry(
                job.id, job.version, run_at_ms=10**12, error="e" * 2_000, max_attempts=3, now_ms=now_ms
            )
        assert (store / "jobs.json").stat().st_size <= 4_194_304
        assert ledger.counts()["dead"] >= 8


# -- faults of the machine --


def test_a_lock_that_is_not_had_in_time_is_busy(store: Path) -> None:
    import fcntl

    with open(store / "ledger.lock", "rb") as other, DirectoryLedger(store, lock_timeout_s=0.05) as ledger:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LedgerBusy, match=r"ledger\.lock"):
            ledger.counts()
        fcntl.flock(other, fcntl.LOCK_UN)
        assert ledger.counts()["queued"] == 1


NO_ROOM = """
import resource, sys
from fencepost.core import ClaimRequest, LedgerFailed, NewJob
from fencepost.core.ledgers.directory import DirectoryLedger

with DirectoryLedger(sys.argv[1]) as ledger:
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    for verb in (
        lambda: ledger.enqueue([NewJob("b", "y" * 200)]),
        lambda: ledger.claim(ClaimRequest(claimant="w", lease_ms=10, max_attempts=3), now_ms=1),
    ):
        try:
            verb()
        except LedgerFailed as error:
            print(error)
"""


def test_a_file_system_that_takes_no_more_ends_in_a_clear_line_and_an_intact_store(store: Path) -> None:
    before = (store / "jobs.json").read_bytes()
    ended = python(NO_ROOM, store)
    lines = ended.stdout.decode().splitlines()
    assert (ended.returncode, ended.stderr, len(lines)) == (0, b"", 2)
    assert all("File too large" in line and str(store) in line for line in lines)
    assert (store / "jobs.json").read_bytes() == before
    assert [path.name for path in store.rglob(".*")] == []
    with DirectoryLedger(store) as ledger:
        assert claim(ledger, 1) == ["a"]


NO_PERMISSION = """
import os, sys
from fencepost.core import ClaimRequest, LedgerFailed, NewJob
from fencepost.core.ledgers.directory import DirectoryLedger

with DirectoryLedger(sys.argv[1]) as ledger:
    if os.geteuid() == 0:
        os.setgid(65534), os.setuid(65534)
    else:
        os.chmod(sys.argv[1], 0o500), os.chmod(sys.argv[1] + "/inputs", 0o500)
    try:
        ledger.enqueue([NewJob("b", "y")])
    except LedgerFailed as error:
        print(error)
"""


def test_a_store_that_may_not_be_written_ends_in_a_clear_line_and_an_intact_store(store: Path) -> None:
    try:
        ended = python(NO_PERMISSION, store)
    finally:
        store.chmod(0o700)
    assert (ended.returncode, ended.stderr) == (0, b"")
    said = ended.stdout.decode()
    assert "Permission denied; run as the user who owns the store, or correct its permissions" in said
    assert [row["ID"] for row in rows(store)] == ["a"]


def test_a_file_where_the_folder_belongs_is_explained(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("")
    assert "is a file; a directory ledger is a folder" in refused("status", "--store", tmp_path / "jobs")
