"""Which names a file has, what kind of file system it lies on by the kernel's own list, and who may open it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fencepost.core import LedgerFailed, NewJob, open_ledger
from fencepost.core.ledgers import file_checks
from fencepost.core.ledgers.file_checks import check_one_name, file_system, mode_findings, network_findings
from fencepost.core.ledgers.open import open_inspection

MOUNTS = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:25 / /mnt/share rw,relatime shared:5 - nfs4 server:/export rw,vers=4.2
31 30 0:26 / /mnt/share/local rw - tmpfs tmpfs rw
32 22 0:27 / /mnt/with\040space rw - cifs //host/share rw
33 22 0:28 / /mnt/twice rw - ext4 /dev/vdb rw
34 33 0:29 / /mnt/twice rw - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/jobs.db", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/a/jobs.db", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/share/local/x", "tmpfs"),
        ("/mnt/with space/x", "cifs"),
        ("/mnt/twice/x", "fuse.sshfs"),
    ],
)
def test_the_longest_mount_point_that_holds_the_path_counts(path: str, kind: str) -> None:
    assert file_system(path, MOUNTS) == kind


def test_a_network_file_system_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(file_checks, "MOUNTS", mounts)
    assert list(network_findings("/mnt/share/jobs.db")) == []
    mounts.write_text(MOUNTS)
    assert list(network_findings("/home/jobs.db")) == []
    (finding,) = network_findings("/mnt/share/jobs.db")
    assert "nfs4" in finding.problem
    assert "PostgreSQL" in finding.remedy


@pytest.mark.parametrize(("mode", "found"), [(0o600, 0), (0o400, 0), (0o640, 1), (0o604, 1), (0o666, 1)])
def test_files_are_their_owner_s_alone(tmp_path: Path, mode: int, found: int) -> None:
    file = tmp_path / "jobs.json"
    file.touch()
    file.chmod(mode)
    assert (
        len(list(mode_findings([str(file), str(tmp_path / "none")], what="files", remedy="chmod"))) == found
    )


# -- a file with two names ------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_yet_has_no_second_name(tmp_path: Path) -> None:
    check_one_name(str(tmp_path / "none"))
    check_one_name(str(tmp_path / "none" / "none"))


def test_a_hard_link_is_a_second_name_until_it_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch()
    check_one_name(str(file))
    os.link(file, tmp_path / "other.db")
    with pytest.raises(LedgerFailed, match=r"has 2 names \(hard links\).*remove all names but one"):
        check_one_name(str(file))
    (tmp_path / "other.db").unlink()
    check_one_name(str(file))


def test_a_link_to_a_file_is_no_second_name(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch()
    (tmp_path / "link.db").symlink_to(file)
    check_one_name(str(tmp_path / "link.db"))


def mount(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *points: Path) -> None:
    """Let the kernel's list say that something is mounted at these paths."""
    lines = [f"{40 + n} 22 0:{n} / {point} rw - ext4 /dev/vdc rw" for n, point in enumerate(points)]
    listed = tmp_path / "mountinfo"
    listed.write_text("\n".join([MOUNTS, *lines]))
    monkeypatch.setattr(file_checks, "MOUNTS", listed)


def test_a_file_that_is_mounted_by_itself_has_a_second_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = tmp_path / "data" / "jobs.db", tmp_path / "data" / "other.db"
    file.parent.mkdir()
    file.touch()
    other.touch()
    mount(monkeypatch, tmp_path, file, tmp_path / "data")
    with pytest.raises(LedgerFailed, match=r"is mounted as a single file.*mount the folder"):
        check_one_name(str(file))
    check_one_name(str(other))


FILES = {"sqlite:jobs": "jobs", "store": "store/ledger.lock"}
"""Of a store of each kind a file that must have one name."""


@pytest.mark.parametrize("store", FILES)
def test_a_ledger_whose_file_has_two_names_is_opened_under_neither(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_ledger(store) as ledger:
        ledger.enqueue([NewJob("a", "text")])
    os.link(FILES[store], "other")
    with pytest.raises(LedgerFailed, match="hard links"), open_ledger(store) as ledger:
        ledger.counts()
    with open_inspection(store) as inspection:
        assert "two-names" in [finding.check for finding in inspection.findings()]
    os.unlink("other")
    with open_ledger(store) as ledger:
        assert ledger.counts()["queued"] == 1
    with open_inspection(store) as inspection:
        assert "two-names" not in [finding.check for finding in inspection.findings()]


@pytest.mark.parametrize(("store", "file"), [*FILES.items(), ("store", "store/jobs.json")])
def test_a_ledger_whose_file_is_mounted_by_itself_is_refused(
    store: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_ledger(store) as ledger:
        ledger.enqueue([NewJob("a", "text")])
    mount(monkeypatch, tmp_path, tmp_path / file)
    with pytest.raises(LedgerFailed, match="mount the folder"), open_ledger(store) as ledger:
        ledger.counts()
