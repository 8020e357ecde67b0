"""What the doctor asks of files on disk, whichever ledger they belong to: modes, and the kind of file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .inspection import Finding

MOUNTS: Final = Path("/proc/self/mountinfo")
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
EXAMPLES: Final = 5

NETWORK: Final = frozenset(
    {
        *("9p", "afp", "afs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"),
        *("smb2", "smb3", "smbfs", "virtiofs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs"),
    }
)
"""File systems that other machines can have mounted too, and whose locks may not hold between them."""


def network_findings(path: str) -> Iterator[Finding]:
    """A finding if the path lies on a network file system."""
    try:
        mounts = MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:  # not Linux: there is no such list
        return
    kind = file_system(os.path.realpath(path), mounts)
    if kind in NETWORK:
        yield Finding(
            "network-file-system",
            f"{path} lies on a network file system ({kind}): its locks may not hold between machines",
            "move it to a local disk, or use PostgreSQL for workers on several machines",
        )


def file_system(path: str, mounts: str) -> str | None:
    """The kind of file system under an absolute path, by the text of ``/proc/self/mountinfo``."""
    best, kind = "", None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) < 5:
            continue
        point = fields[4].encode("ascii", "surrogateescape").decode("unicode_escape")
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            # The last of several at one point is the one on top.
            best, kind = point, rest[0]
    return kind


def mode_findings(paths: Iterable[str], *, what: str, remedy: str) -> Iterator[Finding]:
    """A finding for those of the paths that others than their owner may open."""
    wide = [path for path in paths if _mode(path) & OTHERS]
    if wide:
        yield Finding(
            "file-modes",
            f"{what} that others than their owner may open (mode {_mode(wide[0]):04o}): texts may be private",
            remedy,
            tuple(wide[:EXAMPLES]),
            len(wide),
        )


def _mode(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return 0
