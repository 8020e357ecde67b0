"""Files of a directory ledger: opened without following links, written whole or not at all.

Every function works on a folder's descriptor, so that a folder that is exchanged under a running program can
not redirect a write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Final

from ...errors import LedgerCorrupt, LedgerFailed
from ..crash import Step

LEFTOVER_AGE_S: Final = 3_600
"""A temporary file that is older than this belongs to no running program."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextlib.contextmanager
def engine_errors(where: str) -> Iterator[None]:
    """Turn what the operating system refuses into one clear line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR):
            raise LedgerCorrupt(
                f"{where}: a link, a folder or another kind of file stands where the ledger keeps its own "
                f"({error.strerror}); move it away"
            ) from error
        advice = {
            errno.ENOSPC: "free some space and run the command again",
            errno.EDQUOT: "raise the quota or free some space and run the command again",
            errno.EACCES: "run as the user who owns the store, or correct its permissions",
            errno.EPERM: "run as the user who owns the store, or correct its permissions",
            errno.EROFS: "the file system is mounted read-only: mount it for writing, or name another store",
            errno.EMFILE: "raise the limit of open files (ulimit -n)",
        }.get(error.errno or 0, "nothing was lost; mend the cause and run the command again")
        raise LedgerFailed(f"{where}: {error.strerror or error}; {advice}") from error


def open_folder(path: str, *, parent: int | None = None) -> int:
    """Open a folder, made with mode 0700 where it is absent; below a ``parent`` it must not be a link."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700, dir_fd=parent)
        if parent is not None:
            os.fsync(parent)
    return os.open(path, _FOLDER if parent is None else _FOLDER | os.O_NOFOLLOW, dir_fd=parent)


def read_file(folder: int, name: str, *, where: str, max_bytes: int) -> bytes | None:
    """The file's bytes, or None if there is none.

    Raises:
        LedgerCorrupt: no regular file, or more than ``max_bytes``.
    """
    with engine_errors(where):
        try:
            descriptor = os.open(name, _READ, dir_fd=folder)
        except FileNotFoundError:
            return None
        try:
            return read_descriptor(descriptor, where=where, max_bytes=max_bytes)
        finally:
            os.close(descriptor)


def open_file(folder: int, name: str, *, where: str) -> int | None:
    """A descriptor of the file for reading, or None if there is none."""
    with engine_errors(where):
        try:
            return os.open(name, _READ, dir_fd=folder)
        except FileNotFoundError:
            return None


def read_descriptor(descriptor: int, *, where: str, max_bytes: int) -> bytes:
    """All of a regular file's bytes."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise LedgerCorrupt(f"{where}: not a regular file; move it away")
    parts = []
    left = max_bytes + 1
    while left and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise LedgerCorrupt(
            f"{where}: more than {max_bytes:,} bytes, the most that it may have; the file is left as it is: look at "
            "what wrote it, and restore it from a copy"
        )
    return b"".join(parts)


def replace_file(
    folder: int, name: str, data: bytes, *, step: Step, first: Callable[[], None] = lambda: None
) -> int:
    """Put ``data`` in the place of the file, whole and durably; returns a descriptor of the new file.

    ``first`` is called when the data are durable, before they take the place.
    """
    temporary, descriptor = _write_temporary(folder, name, data, step=step)
    try:
        first()
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        step(f"{name}: renamed")
        os.fsync(folder)
        step(f"{name}: durable")
    except BaseException:
        _discard(folder, temporary, descriptor)
        raise
    return descriptor


def link_file(folder: int, name: str, data: bytes, *, step: Step, kind: str) -> bool:
    """Write ``data`` under a name that must be free; False if it is taken. ``fsync`` the folder afterwards."""
    temporary, descriptor = _write_temporary(folder, name, data, step=step, kind=kind)
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        linked = True
    except FileExistsError:
        linked = False
    finally:
        step(f"{kind}: linked")
        _discard(folder, temporary, descriptor)
    step(f"{kind}: temporary gone")
    return linked


def append_line(folder: int, name: str, line: bytes) -> None:
    """Add one line durably; what a crash left of an unfinished line is closed off first."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        _write_all(descriptor, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(descriptor)
        if size == 0:
            os.fsync(folder)
    finally:
        os.close(descriptor)


def clean_leftovers(folder: int) -> None:
    """Remove temporary files that a crash left long ago."""
    oldest_s = time.time() - LEFTOVER_AGE_S
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(".")]
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(found.st_mode) and found.st_mtime < oldest_s:
                os.unlink(name, dir_fd=folder)


def _write_temporary(folder: int, name: str, data: bytes, *, step: Step, kind: str = "") -> tuple[str, int]:
    temporary = f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
    try:
        step(f"{kind or name}: temporary made")
        _write_all(descriptor, data)
        step(f"{kind or name}: temporary written")
        os.fsync(descriptor)
        step(f"{kind or name}: temporary durable")
    except BaseException:
        _discard(folder, temporary, descriptor)
        raise
    return temporary, descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _discard(folder: int, temporary: str, descriptor: int) -> None:
    os.close(descriptor)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
