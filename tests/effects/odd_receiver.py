"""A receiver over an inbox, as a process of its own, whose work waits or dies where it is told to.

    python -m tests.effects.odd_receiver DB PORT (waits | dies-before-commit | dies-after-commit)

Prints its URL when it listens. ``waits``: prints ``working`` in the middle of each piece of work, and goes on when
it reads a line.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import closing

from fencepost.effects.receiver import Receiver
from fencepost.effects.receiver.inbox import Inbox
from fencepost.effects.receiver.server import Server


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DiesAfterWork(sqlite3.Connection):
    """Kills the process right after a commit that stored work."""

    has_worked = False

    def commit(self) -> None:
        super().commit()
        if self.has_worked:
            die()


def main(path: str, port: str, how: str) -> None:
    inbox = Inbox(path)

    def work(connection, delivery):
        answer = inbox.add(connection, delivery)
        connection.has_worked = True
        if how == "waits":
            print("working", flush=True)
            sys.stdin.readline()
        elif how == "dies-before-commit":
            die()
        return answer

    def connect():
        return closing(sqlite3.connect(path, timeout=30, factory=Connection))

    Connection = DiesAfterWork if how == "dies-after-commit" else _Connection
    server = Server(Receiver(connect, work), port=int(port))
    print(server.url, flush=True)
    server.serve_forever()


class _Connection(sqlite3.Connection):
    has_worked = False


if __name__ == "__main__":
    main(*sys.argv[1:])
