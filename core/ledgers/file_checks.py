"""What is asked of files on disk, whichever ledger they belong to: their names, modes, and the kind of file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ..errors import LedgerFailed
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


def check_one_name(path: str) -> None:
    """Refuse a file of a ledger that other programs can have open under another name; nothing is opened.

    A file that is changed in place, and beside which other files lie, is one ledger only under one name: under two,
    SQLite keeps two logs, jobs are done twice, and commits are lost.

    Raises:
        LedgerFailed: says by what it has two names, and how it gets back to one.
    """
    if fault := second_name(path):
        problem, remedy = fault
        raise LedgerFailed(f"{path}: {problem}; {remedy}")


def name_findings(paths: Iterable[str]) -> Iterator[Finding]:
    """A finding for each of the paths that ``check_one_name`` refuses."""
    for path in paths:
        if fault := second_name(path):
            problem, remedy = fault
            yield Finding("two-names", f"{path} {problem}", remedy, (path,))


def second_name(path: str) -> tuple[str, str] | None:
    """By what a file has a second name, and what to do about it; None where it has one name, or is not there."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return (
            f"has {found.st_nlink} names (hard links): under each it would be another ledger, in which jobs are lost "
            "or done twice",
            f"stop the workers, find the others (find -samefile {path}) and remove all names but one",
        )
    if is_mount_point(path):
        return (
            "is mounted as a single file: under its other name it would be another ledger, in which jobs are lost or "
            "done twice",
            "mount the folder that holds it instead (in a container: -v /data:/data, not -v /data/FILE:/data/FILE)",
        )
    return None


def is_mount_point(path: str) -> bool:
    """Whether something is mounted at exactly this path."""
    try:
        mounts = MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:  # not Linux: there is no such list
        return os.path.ismount(path)
    return any(point == os.path.realpath(path) for point, _ in _mount_points(mounts))


def _mount_points(mounts: str) -> Iterator[tuple[str, str]]:
    """The mount points of a text like ``/proc/self/mountinfo``, and the kind of file system of each."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) >= 5:
            yield fields[4].encode("ascii", "surrogateescape").decode("unicode_escape"), rest[0]


def file_system(path: str, mounts: str) -> str | None:
    """The kind of file system under an absolute path, by the text of ``/proc/self/mountinfo``."""
    best, kind = "", None
    for point, its_kind in _mount_points(mounts):
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            # The last of several at one point is the one on top.
            best, kind = point, its_kind
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
