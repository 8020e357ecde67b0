"""The bank: the receiver, which knows nothing of Fencepost. A SQLite file stands for its system.

It books a transfer under a reference that the customer chooses, refuses a reference that it knows, and can be asked
what became of one. It does *not* replay an earlier answer; if it did, the effect could be ``keyed``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SCHEMA = """
create table if not exists accounts (name text primary key, cents integer not null check (cents >= 0));
create table if not exists transfers (
    number integer primary key,
    reference text not null unique,
    payer text not null references accounts,
    payee text not null references accounts,
    cents integer not null check (cents > 0)
);
"""


class AlreadyBooked(Exception):
    """The bank knows the reference."""


class NotPossible(Exception):
    """The bank will never book this: an account is unknown, or does not hold enough."""


@dataclass(frozen=True)
class Transfer:
    number: int
    payer: str
    payee: str
    cents: int


class Bank:
    def __init__(self, path: str) -> None:
        self._path = path

    def open_account(self, name: str, cents: int) -> None:
        with self._transaction() as bank:
            bank.execute("insert or ignore into accounts values (?, ?)", (name, cents))

    def transfer(self, reference: str, payer: str, payee: str, cents: int) -> Transfer:
        """Book the transfer, once for each reference; when this returns, it is durable."""
        with self._transaction() as bank:
            if bank.execute("select 1 from transfers where reference = ?", (reference,)).fetchone():
                raise AlreadyBooked(reference)
            for name, change in ((payer, -cents), (payee, cents)):
                try:
                    changed = bank.execute(
                        "update accounts set cents = cents + ? where name = ?", (change, name)
                    ).rowcount
                except sqlite3.IntegrityError as error:
                    raise NotPossible(f"{name} does not hold {cents} cents") from error
                if not changed:
                    raise NotPossible(f"there is no account {name!r}")
            number = bank.execute(
                "insert into transfers (reference, payer, payee, cents) values (?, ?, ?, ?)",
                (reference, payer, payee, cents),
            ).lastrowid
        assert number is not None
        return Transfer(number, payer, payee, cents)

    def find(self, reference: str) -> Transfer | None:
        """The transfer with this reference."""
        with self._transaction() as bank:
            row = bank.execute(
                "select number, payer, payee, cents from transfers where reference = ?", (reference,)
            ).fetchone()
        return None if row is None else Transfer(*row)

    def balances(self) -> dict[str, int]:
        with self._transaction() as bank:
            return dict(bank.execute("select name, cents from accounts"))

    def count(self) -> int:
        """How many transfers were ever booked."""
        with self._transaction() as bank:
            return int(bank.execute("select count(*) from transfers").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        bank = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        try:
            bank.executescript(SCHEMA)
            bank.execute("begin immediate")
            yield bank
            bank.execute("commit")
        finally:
            bank.close()  # rolls back what was not committed
