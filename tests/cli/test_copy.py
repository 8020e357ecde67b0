"""``copy``: a ledger moves between kinds with all that is in it, and the old one says where it went."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.cli.inprocess import Program, refused, run
from tests.programs import FENCEPOST


@pytest.fixture
def other(tmp_path: Path) -> Program:
    """Where to: a SQLite file that does not exist yet."""
    return Program(str(tmp_path / "destination.db"))


def copied(source: Program, destination: Program, *arguments: str) -> dict[str, object]:
    ended = run("copy", "--from", source.store, "--to", destination.store, "--now-ms", "100", *arguments)
    assert (ended.status, ended.err) == (0, "")
    document: dict[str, object] = json.loads(ended.out)
    return document


@pytest.fixture
def full(program: Program) -> Program:
    """A ledger with a job in every state that may move, and a purged one."""
    program.enqueue("done")
    program.complete(now_ms=1)
    program.enqueue("gone", "dead")
    program.bury("gone", "dead", now_ms=2)
    program("dead", "purge", "gone", "--now-ms", "3")
    program.enqueue("held")
    program.hold("held", now_ms=4)
    program.enqueue("queued", queue="mail", run_at_ms=50)
    return program


def test_every_job_arrives_in_its_state_and_its_order(full: Program, other: Program) -> None:
    report = copied(full, other)
    assert (report["rows"], report["new"], report["to"]) == (5, 5, other.store)
    jobs = other("jobs", "list", "--now-ms", "100")["jobs"]
    assert [(job["ID"], job["State"]) for job in jobs] == [
        ("done", "completed"),
        ("dead", "dead"),
        ("held", "held"),
        ("queued", "queued"),
    ]
    assert other("jobs", "show", "done", "--now-ms", "100")["receipt"]["words"] == 3
    assert "its text is kept" in other.refused("jobs", "show", "gone", "--now-ms", "100")


def test_a_copy_that_has_ended_is_left_as_it_is(full: Program, other: Program) -> None:
    copied(full, other)
    other("jobs", "cancel", "queued", "--now-ms", "101")
    before = other("jobs", "list", "--now-ms", "101")
    assert copied(full, other)["new"] == 0
    assert other("jobs", "list", "--now-ms", "101") == before


def test_the_old_ledger_refuses_changes_and_says_where_it_went(full: Program, other: Program) -> None:
    copied(full, other)
    assert other.store in full.refused("jobs", "cancel", "queued", "--now-ms", "101")
    shown = full("jobs", "show", "queued", "--now-ms", "101")
    assert f"copied to {other.store}" in shown["why"]
    seal = full("audit")["audit"][-1]
    assert (seal["action"], seal["id"]) == ("seal", other.store)


def test_the_same_copy_again_brings_nothing_new(full: Program, other: Program) -> None:
    copied(full, other)
    again = copied(full, other)
    assert (again["rows"], again["new"]) == (5, 0)


def test_the_actor_stands_in_the_audit(full: Program, other: Program) -> None:
    copied(full, other, "--actor", "ann@ops")
    assert full("audit")["audit"][-1]["actor"] == "ann@ops"


def test_a_live_lease_is_waited_for(full: Program, other: Program) -> None:
    full.claim(now_ms=95, lease_ms=10)
    said = refused("copy", "--from", full.store, "--to", other.store, "--now-ms", "100")
    assert "lease" in said
    assert full("jobs", "cancel", "queued", "--now-ms", "101")["cancelled"]


def test_another_kind_can_move_here_too(store_name: str, tmp_path: Path) -> None:
    source, destination = Program(str(tmp_path / "source.db")), Program(store_name)
    source.enqueue("a", "b")
    assert copied(source, destination)["new"] == 2
    assert [job["ID"] for job in destination("jobs", "list", "--now-ms", "0")["jobs"]] == ["a", "b"]


def test_a_source_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    said = refused("copy", "--from", str(tmp_path / "nix"), "--to", str(tmp_path / "b.db"))
    assert "there is no ledger of that name" in said
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_not_copied_to_itself(full: Program) -> None:
    assert "to itself" in refused("copy", "--from", full.store, "--to", full.store)


@pytest.mark.parametrize("name", ["folder", "file.db"])
def test_a_ledger_is_not_copied_to_itself_under_another_name(name: str, tmp_path: Path) -> None:
    store, link = tmp_path / name, tmp_path / f"link-{name}"
    program = Program(str(store))
    program("status")
    link.symlink_to(store)
    assert "to itself" in refused("copy", "--from", str(store), "--to", str(link))
    program("sweep")  # which a sealed ledger refuses


def test_three_copies_at_once_bring_all_of_it_once(store_name: str, tmp_path: Path) -> None:
    source, destination = Program(str(tmp_path / "source.db")), Program(store_name)
    source.enqueue(*(f"a-{n}" for n in range(500)))
    command = (*FENCEPOST, "copy", "--from", source.store, "--to", destination.store)
    running = [Popen(command, stdout=PIPE, stderr=PIPE) for _ in range(3)]
    ended = [(process.communicate()[1], process.returncode) for process in running]
    assert ended == [(b"", 0)] * 3
    with destination.ledger() as ledger:
        assert ledger.counts()["queued"] == 500
    destination("jobs", "cancel", "a-7", "--now-ms", "1")


@pytest.mark.parametrize("name", ["sqlite:jobs.sqlite", "jobs.db/", "jobs.db", "jobs"])
def test_the_name_that_is_printed_of_a_ledger_opens_it_from_anywhere(
    name: str, other: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = Program(name)
    program.enqueue("a")
    printed = copied(program, other)["from"]
    monkeypatch.chdir("/")
    assert len(Program(str(printed))("status")["jobs"]) == 1
    with other.ledger() as ledger:
        assert ledger.copying_from() is None
        assert ledger.audit()[-1].id == printed


def test_a_ledger_is_not_copied_into_its_own_folder(tmp_path: Path) -> None:
    program = Program(str(tmp_path / "folder"))
    program("status")
    said = refused("copy", "--from", program.store, "--to", f"{program.store}/jobs.db")
    assert "into its own folder" in said
    program("sweep")


def test_until_a_copy_has_ended_the_new_ledger_refuses_changes_and_says_what_to_run(
    program: Program, other: Program
) -> None:
    program.enqueue("a")
    with program.ledger() as source, other.ledger() as destination:
        destination.begin_copy(source.location)
        destination.import_rows(source.export_rows().rows)
        source.seal(destination.location)
    for refusal in (other.refused("jobs", "cancel", "a"), other.refused("worker")):
        assert f"fencepost copy --from {shlex.quote(program.store)} --to {other.store}" in refusal
    shown = other("jobs", "show", "a", "--now-ms", "101")
    assert f"the copy of {program.store} to this ledger has not ended" in shown["why"]
    assert copied(program, other)["new"] == 0
    assert other("jobs", "cancel", "a", "--now-ms", "101")["cancelled"]
