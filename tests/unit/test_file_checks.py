"""What kind of file system a path lies on, by the kernel's own list; and who may open a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.core.ledgers import file_checks
from fencepost.core.ledgers.file_checks import file_system, mode_findings, network_findings

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
