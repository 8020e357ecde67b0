"""A process that forks the workers of the crash kit, so that all of them together import Fencepost once.

Run by ``processes.py``. A plugin is imported after the fork: each worker has the state of a new process.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from . import child

PRELOADED: Final = (
    "fencepost.core.ledgers.directory.ledger",
    "fencepost.core.ledgers.sqlite.ledger",
    "importlib.metadata",
)
"""What every worker would import by itself, and would be slow at."""


def main() -> None:
    """Fork a worker at each ``fork``, and give the exit status of one at each ``wait PID``, until nobody asks."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    for name in PRELOADED:
        importlib.import_module(name)
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 64, 3)
        if not message:
            return
        verb, _, pid = message.decode().partition(" ")
        if verb == "fork":
            answer = _fork(channel, descriptors)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(int(pid), 0)[1])
        channel.sendall(f"{answer}\n".encode())


def _fork(channel: socket.socket, descriptors: Sequence[int]) -> int:
    pid = os.fork()
    if pid == 0:
        channel.close()
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        status = 1
        try:
            child.main()
            status = 0
        except BaseException:  # noqa: BLE001 - nothing may return into the host's loop; the traceback is shown
            traceback.print_exc()
        finally:
            os._exit(status)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


if __name__ == "__main__":
    main()
